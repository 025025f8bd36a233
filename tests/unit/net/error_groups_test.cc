// Error groups of several pages are added up.
#include "net/resp/error_groups.h"

#include <string>
#include <vector>

#include "tests/support/made_replies.h"
#include "tests/support/test.h"

namespace {

using sluice::ErrorGroup;
using sluice::ErrorGroups;
using sluice::RespValue;
using sluice::test::map;
using sluice::test::number;
using sluice::test::text;

RespValue line(int64_t count, int64_t first, int64_t last, const std::string& id) {
  return map({text("count"), number(count), text("first"), number(first), text("last"),
              number(last), text("id"), text(id), text("error"), text("of " + id)});
}

std::string patterns(const std::vector<const ErrorGroup*>& groups) {
  std::string all;
  for (const ErrorGroup* group : groups) all += "[" + group->pattern + "]";
  return all;
}

TEST_CASE("a pattern on two pages is one group, shown by its newest job") {
  ErrorGroups groups;
  groups.add(map({text("a #"), line(2, 50, 90, "new"), text(""), line(1, 60, 60, "x")}));
  groups.add(map({text("b"), line(7, 1, 9, "b"), text("a #"), line(3, 10, 40, "old")}));
  groups.add(map({}));
  CHECK(groups.size() == 3);
  CHECK(groups.jobs() == 13);
  CHECK(patterns(groups.largest(9)) == "[b][a #][]");
  CHECK(patterns(groups.largest(1)) == "[b]");
  const ErrorGroup a = *groups.largest(2)[1];
  CHECK(a.count == 5);
  CHECK(a.first_ms == 10);
  CHECK(a.last_ms == 90);
  CHECK(a.id == "new");
  CHECK(a.error == "of new");
}

TEST_CASE("of groups of one size the one with the newest job is first") {
  ErrorGroups groups;
  groups.add(map({text("z"), line(1, 9, 9, "z"), text("m"), line(1, 8, 8, "m")}));
  groups.add(map({text("a"), line(1, 7, 7, "a"), text("b"), line(2, 6, 6, "b")}));
  CHECK(patterns(groups.largest(4)) == "[b][z][m][a]");
}

}  // namespace
