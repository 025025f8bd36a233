// Error groups of several pages are added up.
#include "tools/cli/error_groups.h"

#include <string>

#include "tools/cli/replies.h"

#include "tests/support/made_replies.h"
#include "tests/support/test.h"

namespace {

using sluice::RespValue;
using sluice::cli::add_error_groups;
using sluice::cli::integer_of;
using sluice::cli::text_of;
using sluice::test::map;
using sluice::test::number;
using sluice::test::text;

RespValue line(int64_t count, int64_t first, int64_t last, const std::string& id) {
  return map({text("count"), number(count), text("first"), number(first), text("last"),
              number(last), text("id"), text(id)});
}

TEST_CASE("a pattern on two pages is one group, shown by its newest job") {
  RespValue groups;
  add_error_groups(map({text("a #"), line(2, 50, 90, "new"), text(""), line(1, 60, 60, "x")}),
                   groups);
  add_error_groups(map({text("b"), line(7, 1, 9, "b"), text("a #"), line(3, 10, 40, "old")}),
                   groups);
  REQUIRE(groups.items.size() == 6);
  const RespValue& a = groups.at("a #");
  CHECK(integer_of(a, "count") == 5);
  CHECK(integer_of(a, "first") == 10);
  CHECK(integer_of(a, "last") == 90);
  CHECK(text_of(a, "id") == "new");
  CHECK(integer_of(groups.at("b"), "count") == 7);
}

}  // namespace
