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

}  // namespace sluice
