// read_keys: what terminals send, whole, unknown, and cut off.
#include "tools/cli/keys.h"

#include <string>

#include "tests/support/test.h"

namespace {

using sluice::Bytes;
using sluice::cli::Key;
using sluice::cli::KeyPress;
using sluice::cli::read_keys;

std::string shown(Bytes bytes) {
  std::string out;
  for (const KeyPress& key : read_keys(bytes)) {
    out += key.key == Key::kText ? "'" + key.text + "'"
                                 : "<" + std::to_string(static_cast<int>(key.key)) + ">";
  }
  return out;
}

std::string named(Key key) { return "<" + std::to_string(static_cast<int>(key)) + ">"; }

TEST_CASE("characters are text, also those of several bytes and those that are cut off") {
  CHECK(shown("ab") == "'a''b'");
  CHECK(shown("\u00fc\u4e2d\U0001f600") == "'\u00fc''\u4e2d''\U0001f600'");
  CHECK(shown("\xe4\xb8") == "'\xe4\xb8'");
  CHECK(shown("\xff\x80") == "'\xff\x80'");
  CHECK(shown("") == "");
}

TEST_CASE("keys of every kind of terminal") {
  for (const char* up : {"\x1b[A", "\x1bOA"}) CHECK(shown(up) == named(Key::kUp));
  for (const char* home : {"\x1b[H", "\x1bOH", "\x1b[1~", "\x1b[7~"}) {
    CHECK(shown(home) == named(Key::kHome));
  }
  CHECK(shown("\x1b[B\x1b[6~x") == named(Key::kDown) + named(Key::kPageDown) + "'x'");
  CHECK(shown("\t\r\x7f\b\n") == named(Key::kTab) + named(Key::kEnter) + named(Key::kErase) +
                                     named(Key::kErase) + named(Key::kEnter));
  CHECK(shown("\x1b[Z") == named(Key::kBackTab));
  CHECK(shown(Bytes("\0\x03", 2)) == named(Key::kOther) + named(Key::kOther));
}

TEST_CASE("an escape byte alone is a key, an unknown sequence is one key") {
  CHECK(shown("\x1b") == named(Key::kEscape));
  CHECK(shown("\x1b\x1b[A") == named(Key::kEscape) + named(Key::kUp));
  CHECK(shown("\x1bx") == named(Key::kEscape) + "'x'");
  CHECK(shown("\x1b[200~q") == named(Key::kOther) + "'q'");
  CHECK(shown("\x1b[1;5Cq") == named(Key::kOther) + "'q'");
  CHECK(shown("\x1b[12") == named(Key::kOther));
}

}  // namespace
