#include "engine/base/quoting.h"

#include "engine/base/hex.h"

namespace sluice {

namespace {

// Between arguments Redis skips every isspace() byte, but only four of them end a bare word.
bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool ends_bare_word(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

char unescape(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'b':
      return '\b';
    case 'a':
      return '\a';
    default:
      return c;
  }
}

// Decodes from the byte after an opening quote. Leaves `from` after the closing quote and `to`
// after the decoded bytes; `to` never overtakes `from`.
bool decode_quoted(char quote, char*& from, const char* end, char*& to) {
  while (from < end) {
    const char c = *from++;
    if (c == quote) return from == end || is_blank(*from);
    if (c != '\\' || from == end) {
      *to++ = c;
      continue;
    }
    if (quote == '\'') {
      *to++ = *from == '\'' ? *from++ : c;
      continue;
    }
    if (*from == 'x' && end - from >= 3 && hex_value(from[1]) >= 0 && hex_value(from[2]) >= 0) {
      *to++ = static_cast<char>(hex_value(from[1]) * 16 + hex_value(from[2]));
      from += 3;
      continue;
    }
    *to++ = unescape(*from++);
  }
  return false;
}

// Decodes the argument that starts at `from`. A word may continue with a quoted part, as in a"b c";
// the closing quote ends the argument.
bool split_one(char*& from, const char* end, std::vector<Bytes>& args) {
  char* const start = from;
  while (from < end && !ends_bare_word(*from) && *from != '"' && *from != '\'') ++from;
  char* to = from;
  if (from < end && !ends_bare_word(*from)) {
    const char quote = *from++;
    if (!decode_quoted(quote, from, end, to)) return false;
  }
  args.emplace_back(start, static_cast<size_t>(to - start));
  return true;
}

}  // namespace

bool split_quoted_args(std::span<char> line, std::vector<Bytes>& args) {
  const size_t args_before = args.size();
  char* from = line.data();
  const char* const end = from + line.size();
  for (;;) {
    while (from < end && is_blank(*from)) ++from;
    if (from == end) return true;
    if (!split_one(from, end, args)) {
      args.resize(args_before);
      return false;
    }
  }
}

std::string printable_bytes(Bytes bytes) {
  constexpr size_t kShown = 48;
  std::string out = "\"";
  for (const char c : bytes.substr(0, kShown)) {
    if (c >= 32 && c < 127 && c != '"' && c != '\\') {
      out.push_back(c);
    } else {
      out += "\\x";
      append_hex(out, Bytes(&c, 1));
    }
  }
  out += '"';
  if (bytes.size() > kShown) out += "..(" + std::to_string(bytes.size()) + " bytes)";
  return out;
}

Bytes cut_text(Bytes text, size_t most) {
  if (text.size() <= most) return text;
  // A character has at most three bytes behind its first one.
  size_t end = most;
  const auto continues = [&] { return (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80; };
  while (end > 0 && most - end < 3 && continues()) --end;
  return text.substr(0, continues() ? most : end);
}

std::string shortened(Bytes text, size_t most) {
  std::string kept(text.substr(0, most));
  if (text.size() > most) kept += "... (" + std::to_string(text.size() - most) + " more bytes)";
  return kept;
}

}  // namespace sluice
