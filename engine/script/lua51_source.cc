#include "engine/script/lua51_source.h"

#include <algorithm>
#include <vector>

#include "engine/base/characters.h"

namespace sluice {

namespace {

enum class TokenKind { kEnd, kName, kString, kSymbol, kOther };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  Bytes text;
  size_t begin = 0;
  size_t end = 0;
};

bool is_name_start(char c) { return is_letter(c) || c == '_'; }

// Lua's tokens, as far as finding calls needs them. Invalid source gives tokens as well; the
// compiler reports its errors.
class Lexer {
 public:
  explicit Lexer(Bytes code) : code_(code) {}

  Token next() {
    skip_blanks();
    Token token;
    token.begin = at_;
    if (at_ >= code_.size()) {
      token.end = at_;
      return token;
    }
    const char c = code_[at_];
    if (is_name_start(c)) {
      token.kind = TokenKind::kName;
      while (at_ < code_.size() && (is_name_start(code_[at_]) || is_digit(code_[at_]))) ++at_;
    } else if (is_digit(c)) {
      token.kind = TokenKind::kOther;
      skip_number();
    } else if (c == '"' || c == '\'') {
      token.kind = TokenKind::kString;
      skip_quoted(c);
    } else if (c == '[' && long_level() >= 0) {
      token.kind = TokenKind::kString;
      skip_long(long_level());
    } else {
      token.kind = TokenKind::kSymbol;
      // Two dots are not a field access.
      at_ += code_.substr(at_, 2) == ".." ? 2 : 1;
    }
    token.end = at_;
    token.text = code_.substr(token.begin, token.end - token.begin);
    return token;
  }

 private:
  void skip_blanks() {
    for (;;) {
      while (at_ < code_.size() && static_cast<unsigned char>(code_[at_]) <= ' ') ++at_;
      if (code_.substr(at_, 2) != "--") return;
      at_ += 2;
      const int level = at_ < code_.size() && code_[at_] == '[' ? long_level() : -1;
      if (level >= 0) {
        skip_long(level);
      } else {
        at_ = std::min(code_.find_first_of("\r\n", at_), code_.size());
      }
    }
  }

  void skip_number() {
    for (char previous = 0; at_ < code_.size(); ++at_) {
      const char c = code_[at_];
      const bool sign = (c == '+' || c == '-') && (previous == 'e' || previous == 'E');
      if (!is_digit(c) && !is_name_start(c) && c != '.' && !sign) return;
      previous = c;
    }
  }

  void skip_quoted(char quote) {
    for (++at_; at_ < code_.size(); ++at_) {
      if (code_[at_] == '\\') {
        ++at_;
      } else if (code_[at_] == quote || code_[at_] == '\n') {
        ++at_;
        return;
      }
    }
    at_ = std::min(at_, code_.size());
  }

  // The number of `=` in a long bracket that opens here, or -1 if none opens.
  int long_level() const {
    size_t i = at_ + 1;
    while (i < code_.size() && code_[i] == '=') ++i;
    return i < code_.size() && code_[i] == '[' ? static_cast<int>(i - at_ - 1) : -1;
  }

  void skip_long(int level) {
    const std::string close = "]" + std::string(static_cast<size_t>(level), '=') + "]";
    const size_t found = code_.find(close, at_);
    at_ = found == Bytes::npos ? code_.size() : found + close.size();
  }

  Bytes code_;
  size_t at_ = 0;
};

// Functions that return one value, by their paths.
bool has_one_result(Bytes path) {
  constexpr Bytes kLibraries[] = {"redis.", "cjson.", "bit."};
  constexpr Bytes kFunctions[] = {"error",         "tonumber",    "tostring",      "setmetatable",
                                  "string.sub",    "string.rep",  "string.format", "string.lower",
                                  "string.len",    "string.char", "string.upper",  "table.concat",
                                  "cmsgpack.pack", "struct.pack", "struct.size"};
  if (path == "cjson.encode_sparse_array") return false;
  for (const Bytes library : kLibraries) {
    if (path.substr(0, library.size()) == library) return true;
  }
  return std::find(std::begin(kFunctions), std::end(kFunctions), path) != std::end(kFunctions);
}

bool ends_return(const Token& token) {
  return token.kind == TokenKind::kEnd || token.text == "end" || token.text == "else" ||
         token.text == "elseif" || token.text == "until" || token.text == ";";
}

class Rewriter {
 public:
  explicit Rewriter(Bytes code) : code_(code) {
    Lexer lexer(code);
    do {
      tokens_.push_back(lexer.next());
    } while (tokens_.back().kind != TokenKind::kEnd);
    match_brackets();
  }

  std::string run() {
    for (size_t i = 0; i + 1 < tokens_.size(); ++i) {
      const Token& token = tokens_[i];
      if (token.kind == TokenKind::kString && token.text[0] != '[') rewrite_escapes(token);
      if (token.kind != TokenKind::kName) continue;
      if (token.text == "function" || token.text == "do" || token.text == "if" ||
          token.text == "repeat") {
        blocks_.push_back(token.text == "function");
        functions_ += token.text == "function" ? 1 : 0;
      } else if ((token.text == "end" || token.text == "until") && !blocks_.empty()) {
        functions_ -= blocks_.back() ? 1 : 0;
        blocks_.pop_back();
      } else if (token.text == "return") {
        rewrite_return(i + 1);
      }
    }
    // Functions inside the arguments of a rewritten call have added their edits in between.
    std::stable_sort(edits_.begin(), edits_.end(),
                     [](const Edit& a, const Edit& b) { return a.at < b.at; });
    std::string out;
    size_t copied = 0;
    for (const Edit& edit : edits_) {
      out += code_.substr(copied, edit.at - copied);
      out += edit.inserted;
      copied = edit.at + edit.removed;
    }
    out += code_.substr(copied);
    return out;
  }

 private:
  struct Edit {
    size_t at;
    size_t removed;
    Bytes inserted;
  };

  // Lua 5.1 replaces an unknown escape by the character after the backslash; LuaJIT refuses it, or
  // gives it a meaning (\x, \u, \z).
  void rewrite_escapes(const Token& token) {
    for (size_t i = token.begin + 1; i + 1 < token.end; ++i) {
      if (code_[i] != '\\') continue;
      constexpr Bytes kKnown = "abfnrtv\\\"'\n\r0123456789";
      if (kKnown.find(code_[i + 1]) == Bytes::npos) edits_.push_back({i, 1, {}});
      ++i;
    }
  }

  // `first` is the token after `return`.
  void rewrite_return(size_t first) {
    size_t i = first + 1;
    bool plain_path = tokens_[first].kind == TokenKind::kName;
    if (plain_path) {
      if (tokens_[first].text == "function" || tokens_[first].text == "not") return;
    } else {
      // ("text"):method()
      i = tokens_[first].text == "(" ? skip_group(first) : 0;
      if (i == 0) return;
    }
    std::string path(tokens_[first].text);
    bool call = false;
    for (;;) {
      const Token& token = tokens_[i];
      call = false;
      if (token.text == "." || token.text == ":") {
        if (plain_path) path += std::string(token.text) + std::string(tokens_[i + 1].text);
        // No field has this name. Continuing along this path from each `return` in it would take
        // quadratic time.
        if (tokens_[i + 1].text == "return") return;
        i += 2;
        if (i >= tokens_.size()) return;
        continue;
      }
      if (token.kind == TokenKind::kString) {
        ++i;
        call = true;
      } else if (token.text == "(" || token.text == "{" || token.text == "[") {
        i = skip_group(i);
        if (i == 0) return;
        call = token.text != "[";
        if (!call) plain_path = false;
      } else {
        return;
      }
      if (!call) continue;
      if (ends_return(tokens_[i])) break;
      // The result of a call is used further, so the function that is called last has no name.
      plain_path = false;
    }
    if (functions_ == 0 || (plain_path && has_one_result(path))) {
      edits_.push_back({tokens_[first].begin, 0, "("});
      edits_.push_back({tokens_[i - 1].end, 0, ")"});
    }
  }

  // All brackets are matched in one pass: matching them one by one would take quadratic time.
  void match_brackets() {
    behind_group_.resize(tokens_.size());
    std::vector<size_t> open;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (tokens_[i].kind != TokenKind::kSymbol) continue;
      const char c = tokens_[i].text[0];
      if (c == '(' || c == '{' || c == '[') open.push_back(i);
      if ((c == ')' || c == '}' || c == ']') && !open.empty()) {
        behind_group_[open.back()] = i + 1;
        open.pop_back();
      }
    }
  }

  // The index after the bracket that closes the one at `open`; 0 if it is not closed.
  size_t skip_group(size_t open) const { return behind_group_[open]; }

  Bytes code_;
  std::vector<Token> tokens_;
  std::vector<size_t> behind_group_;  // by the index of the opening bracket
  std::vector<bool> blocks_;          // true: of a function
  int functions_ = 0;
  std::vector<Edit> edits_;
};

}  // namespace

std::string as_lua51(Bytes code) {
  std::string result = Rewriter(code).run();
  // LuaJIT would skip such a first line or read it as bytecode. Redis's Lua 5.1 reads it as text.
  if (!result.empty() && (result[0] == '#' || result[0] == '\x1b' || result[0] == '\xef')) {
    result.insert(0, 1, ' ');
  }
  return result;
}

}  // namespace sluice
