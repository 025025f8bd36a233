// Table: columns that fit the screen, numbers whole or not at all.
#include "tools/cli/table.h"

#include <string>
#include <vector>

#include "tools/cli/text.h"

#include "tests/support/test.h"

namespace {

using sluice::cli::Screen;
using sluice::cli::Table;
using sluice::cli::text_width;

std::vector<std::string> lines(size_t width, bool is_terminal = true) {
  sluice::cli::use_utf8();
  Table table({{"NAME", false, true},
               {"ONE", true},
               {"EMPTY", true},
               {"TWO", true},
               {"NOTE", false, true}});
  table.add({"a-name-of-20-letters", "1,000", "", "2,000", "a note of some length"});
  table.add({"\u4e2d\u6587", "1", "", "2", "x"});
  Screen screen;
  screen.width = width;
  screen.terminal = is_terminal;
  return table.lines(screen);
}

TEST_CASE("without a terminal a tab divides the columns, empty ones too") {
  CHECK(lines(0, false) ==
        std::vector<std::string>{"NAME\tONE\tEMPTY\tTWO\tNOTE",
                                 "a-name-of-20-letters\t1,000\t\t2,000\ta note of some length",
                                 "\u4e2d\u6587\t1\t\t2\tx"});
}

TEST_CASE("a terminal without a width gets whole cells, and no empty columns") {
  CHECK(lines(0) ==
        std::vector<std::string>{"NAME                    ONE    TWO  NOTE",
                                 "a-name-of-20-letters  1,000  2,000  a note of some length",
                                 "\u4e2d\u6587                      1      2  x"});
}

TEST_CASE("texts are cut before numbers go, and numbers go from the right") {
  CHECK(lines(50)[1] == "a-name-of-20-let…  1,000  2,000  a note of some l…");
  CHECK(lines(40)[0] == "NAME               ONE  NOTE");
  CHECK(lines(40)[1] == "a-name-of-20-l…  1,000  a note of some …");
  CHECK(lines(30)[1] == "a-name-of-20-…  a note of som…");
  CHECK(lines(16)[1] == "a-name…  a note…");
}

TEST_CASE("no line is wider than the screen") {
  for (size_t width = 1; width < 70; ++width) {
    for (const std::string& line : lines(width)) CHECK(text_width(line) <= width);
  }
}

}  // namespace
