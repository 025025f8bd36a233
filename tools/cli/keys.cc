#include "tools/cli/keys.h"

#include <algorithm>

namespace sluice::cli {

namespace {

struct Sequence {
  Bytes bytes;  // behind the escape byte
  Key key;
};

// Those of xterm, in both cursor modes, of the Linux console and of rxvt.
constexpr Sequence kSequences[] = {
    {"[A", Key::kUp},      {"[B", Key::kDown},      {"[C", Key::kRight},   {"[D", Key::kLeft},
    {"OA", Key::kUp},      {"OB", Key::kDown},      {"OC", Key::kRight},   {"OD", Key::kLeft},
    {"[5~", Key::kPageUp}, {"[6~", Key::kPageDown}, {"[H", Key::kHome},    {"[F", Key::kEnd},
    {"OH", Key::kHome},    {"OF", Key::kEnd},       {"[1~", Key::kHome},   {"[4~", Key::kEnd},
    {"[7~", Key::kHome},   {"[8~", Key::kEnd},      {"[Z", Key::kBackTab},
};

// The length of an unknown sequence: up to its last byte, which is a letter or ~.
size_t sequence_length(Bytes bytes) {
  if (bytes.empty() || (bytes[0] != '[' && bytes[0] != 'O')) return 0;
  size_t length = 1;
  while (length < bytes.size() && (bytes[length] < 0x40 || bytes[length] > 0x7e)) ++length;
  return std::min(length + 1, bytes.size());
}

KeyPress take_sequence(Bytes& bytes) {
  for (const Sequence& known : kSequences) {
    if (!bytes.starts_with(known.bytes)) continue;
    bytes.remove_prefix(known.bytes.size());
    return {known.key};
  }
  const size_t length = sequence_length(bytes);
  bytes.remove_prefix(length);
  return {length == 0 ? Key::kEscape : Key::kOther};
}

KeyPress control_key(char byte) {
  switch (byte) {
    case '\t':
      return {Key::kTab};
    case '\r':
    case '\n':
      return {Key::kEnter};
    case '\b':
    case 0x7f:
      return {Key::kErase};
    default:
      return {};
  }
}

// The bytes of a character in UTF-8 by its first byte.
size_t character_length(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0xc0 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

}  // namespace

std::vector<KeyPress> read_keys(Bytes bytes) {
  std::vector<KeyPress> keys;
  while (!bytes.empty()) {
    const char first = bytes[0];
    if (first == '\x1b') {
      bytes.remove_prefix(1);
      keys.push_back(take_sequence(bytes));
      continue;
    }
    const size_t length = std::min(character_length(first), bytes.size());
    const bool is_control = static_cast<unsigned char>(first) < 0x20 || first == 0x7f;
    keys.push_back(is_control ? control_key(first)
                              : KeyPress{Key::kText, std::string(bytes.substr(0, length))});
    bytes.remove_prefix(length);
  }
  return keys;
}

}  // namespace sluice::cli
