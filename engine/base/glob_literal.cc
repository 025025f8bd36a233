#include "engine/base/glob_literal.h"

namespace sluice {

namespace {

// Bytes that are special outside of a class.
bool is_glob_byte(char c) { return c == '*' || c == '?' || c == '[' || c == '\\'; }

}  // namespace

std::string glob_escape(Bytes text) {
  std::string glob;
  glob.reserve(text.size());
  for (const char c : text) {
    if (is_glob_byte(c)) glob += '\\';
    glob += c;
  }
  return glob;
}

std::optional<std::string> glob_literal(Bytes glob) {
  std::string text;
  text.reserve(glob.size());
  for (size_t i = 0; i < glob.size(); ++i) {
    if (is_glob_byte(glob[i])) {
      const bool escapes = glob[i] == '\\' && i + 1 < glob.size() && is_glob_byte(glob[i + 1]);
      if (!escapes) return std::nullopt;
      ++i;
    }
    text += glob[i];
  }
  return text;
}

size_t glob_literal_bytes(Bytes glob) {
  size_t count = 0;
  for (size_t i = 0; i < glob.size(); ++i) {
    if (glob[i] == '*' || glob[i] == '?') continue;
    if (glob[i] == '[') {
      // As in glob_match: up to the first `]` that is not after a `\`.
      for (++i; i < glob.size() && glob[i] != ']'; ++i) {
        if (glob[i] == '\\') ++i;
      }
      continue;
    }
    if (glob[i] == '\\' && i + 1 < glob.size()) ++i;
    ++count;
  }
  return count;
}

}  // namespace sluice
