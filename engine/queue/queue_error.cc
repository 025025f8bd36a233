#include "engine/queue/queue_error.h"

#include "engine/base/characters.h"
#include "engine/base/hex.h"
#include "engine/base/numbers.h"

namespace sluice {

namespace {

constexpr size_t kMaxValueBytes = 64;

bool is_plain(char c) {
  return is_letter_or_digit(c) || c == '.' || c == '_' || c == ':' || c == '-';
}

}  // namespace

std::string encoded_hint(Bytes value) {
  std::string text;
  for (const char c : value.substr(0, kMaxValueBytes)) {
    if (is_plain(c)) {
      text += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    text += '%';
    text += kUpperHexDigits[byte >> 4];
    text += kUpperHexDigits[byte & 15];
  }
  return text;
}

QueueError& QueueError::with(Bytes name, Bytes value) {
  text_ += ' ';
  text_ += name;
  text_ += '=';
  text_ += encoded_hint(value);
  return *this;
}

QueueError& QueueError::with(Bytes name, int64_t value) {
  char text[kMaxIntegerText];
  return with(name, Bytes(text, format_i64(text, value)));
}

}  // namespace sluice
