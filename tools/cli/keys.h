// Keys: what a terminal sends when keys are pressed, as keys.
//
// Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/bytes.h"

namespace sluice::cli {

enum class Key : uint8_t {
  kText,  // a character, in `text`
  kUp,
  kDown,
  kLeft,
  kRight,
  kPageUp,
  kPageDown,
  kHome,
  kEnd,
  kTab,
  kBackTab,
  kEnter,
  kEscape,
  kErase,
  kOther,
};

struct KeyPress {
  Key key = Key::kOther;
  std::string text = {};

  bool is(Bytes character) const { return key == Key::kText && text == character; }
};

// The keys of one read. A terminal sends the bytes of a key together, so an escape byte at the end
// is the key of that name.
std::vector<KeyPress> read_keys(Bytes bytes);

}  // namespace sluice::cli
