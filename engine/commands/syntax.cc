#include "engine/commands/syntax.h"

#include <algorithm>

namespace sluice {

namespace {

std::vector<std::string> split_words(Bytes text) {
  std::vector<std::string> words;
  std::string word;
  const auto flush = [&] {
    if (!word.empty()) words.push_back(std::move(word));
    word.clear();
  };
  for (const char c : text) {
    if (c == ' ') {
      flush();
    } else if (c == '[' || c == ']' || c == '<' || c == '>' || c == '|') {
      flush();
      words.emplace_back(1, c);
    } else {
      word += c;
    }
  }
  flush();
  return words;
}

bool is_mark(const std::string& word) {
  return word == "[" || word == "]" || word == "<" || word == ">" || word == "|" || word == "...";
}

bool is_token(const std::string& word) {
  return !is_mark(word) &&
         std::none_of(word.begin(), word.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

std::string type_of(const std::string& name) {
  const auto is = [&](std::initializer_list<Bytes> names) {
    return std::find(names.begin(), names.end(), Bytes(name)) != names.end();
  };
  if (is({"key", "queue", "source", "destination", "newkey", "key1", "key2", "destkey", "sourcekey",
          "storekey"}))
    return "key";
  if (is({"pattern"})) return "pattern";
  if (is({"score", "timeout", "weight", "longitude", "latitude", "radius", "width", "height"}))
    return "double";
  if (name.starts_with("unix-time")) return "unix-time";
  if (is({"seconds",   "milliseconds", "count",       "numkeys",   "index",  "start",
          "stop",      "offset",       "increment",   "decrement", "cursor", "limit",
          "rank",      "len",          "num-matches", "protover",  "end",    "min-match-len",
          "client-id", "numqueues",    "slots",       "times"}) ||
      name.ends_with("milliseconds")) {
    return "integer";
  }
  return "string";
}

class Parser {
 public:
  explicit Parser(std::vector<std::string> words) : words_(std::move(words)) {}

  std::vector<SyntaxNode> sequence() {
    std::vector<SyntaxNode> nodes;
    while (at_ < words_.size()) {
      const std::string& word = words_[at_];
      if (word == "]" || word == ">" || word == "|") break;
      if (word == "...") {
        repeats_ = true;
        ++at_;
      } else if (word == "[") {
        optional(nodes);
      } else if (word == "<") {
        ++at_;
        nodes.push_back(alternatives());
      } else {
        nodes.push_back(plain());
      }
    }
    return nodes;
  }

 private:
  // A token with its arguments, or an argument.
  SyntaxNode plain() {
    SyntaxNode node;
    const std::string word = words_[at_++];
    if (!is_token(word)) {
      node.name = word;
      node.type = type_of(word);
      return node;
    }
    std::vector<SyntaxNode> values;
    while (at_ < words_.size() && !is_mark(words_[at_]) && !is_token(words_[at_])) {
      SyntaxNode value;
      value.name = words_[at_++];
      value.type = type_of(value.name);
      values.push_back(std::move(value));
    }
    if (values.size() == 1) node = std::move(values[0]);
    node.token = word;
    if (values.empty()) {
      node.name = to_lower(word);
      node.type = "pure-token";
    } else if (values.size() > 1) {
      node.name = to_lower(word);
      node.type = "block";
      node.arguments = std::move(values);
    }
    return node;
  }

  static SyntaxNode block(std::vector<SyntaxNode> nodes) {
    if (nodes.size() == 1) return std::move(nodes[0]);
    SyntaxNode node;
    node.type = "block";
    for (const SyntaxNode& child : nodes) {
      if (!node.name.empty()) node.name += "_";
      node.name += child.name;
    }
    node.arguments = std::move(nodes);
    return node;
  }

  // From after the opening bracket through the closing one.
  SyntaxNode alternatives() {
    std::vector<SyntaxNode> choices;
    choices.push_back(block(sequence()));
    while (at_ < words_.size() && words_[at_] == "|") {
      ++at_;
      choices.push_back(block(sequence()));
    }
    ++at_;
    if (choices.size() == 1) return std::move(choices[0]);
    SyntaxNode node = block(std::move(choices));
    node.type = "oneof";
    return node;
  }

  void optional(std::vector<SyntaxNode>& nodes) {
    ++at_;
    repeats_ = false;
    const size_t begin = at_;
    SyntaxNode node = alternatives();
    if (!repeats_) {
      node.optional = true;
      nodes.push_back(std::move(node));
      return;
    }
    // `x [x ...]`: the repeated nodes are merged into the ones before, which are marked as
    // multiple.
    repeats_ = false;
    const size_t repeated =
        node.type == "block" && words_[begin] != node.token ? node.arguments.size() : size_t{1};
    if (repeated > nodes.size()) return;
    const auto first = nodes.end() - static_cast<std::ptrdiff_t>(repeated);
    std::vector<SyntaxNode> tail(std::make_move_iterator(first),
                                 std::make_move_iterator(nodes.end()));
    nodes.erase(first, nodes.end());
    SyntaxNode joined = block(std::move(tail));
    joined.multiple = true;
    joined.repeats_token = !joined.token.empty() && words_[begin] == joined.token;
    nodes.push_back(std::move(joined));
  }

  std::vector<std::string> words_;
  size_t at_ = 0;
  bool repeats_ = false;
};

}  // namespace

std::vector<SyntaxNode> parse_syntax(Bytes text) { return Parser(split_words(text)).sequence(); }

}  // namespace sluice
