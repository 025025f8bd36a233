// When the primary lets the replicated log forget what is old, and up to where.
#include "net/group/log_compaction.h"

#include "tests/support/group_run.h"
#include "tests/support/test.h"

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr int64_t kEveryMs = LogCompaction::kEveryMs;

}  // namespace

TEST_CASE("each minute the log forgets what it was a minute before") {
  LogCompaction compaction;
  CHECK(!compaction.next(0, 100).has_value());  // nothing is known yet
  CHECK(!compaction.next(10, 200).has_value());
  CHECK(!compaction.next(20, 200 + kEveryMs - 1).has_value());
  CHECK(compaction.next(30, 200 + kEveryMs) == 10);
  CHECK(!compaction.next(40, 200 + 2 * kEveryMs - 1).has_value());
  CHECK(compaction.next(50, 300 + 2 * kEveryMs) == 30);
  CHECK(compaction.next(60, 300 + 3 * kEveryMs) == 50);
}

TEST_CASE("for a minute after a trim, which compacts as well, nothing is to be compacted") {
  LogCompaction compaction;
  CHECK(!compaction.next(10, 0).has_value());
  compaction.on_trimmed(kEveryMs - 1);
  CHECK(!compaction.next(20, 2 * kEveryMs - 2).has_value());
  CHECK(!compaction.next(30, 2 * kEveryMs - 1).has_value());  // not known: what was a minute ago
  CHECK(compaction.next(40, 3 * kEveryMs - 1) == 30);
}

TEST_CASE("a log that was restored from a backup is not compacted up to what it has not reached") {
  LogCompaction compaction;
  CHECK(!compaction.next(100, 0).has_value());
  CHECK(!compaction.next(10, kEveryMs).has_value());
  CHECK(compaction.next(20, 2 * kEveryMs) == 10);
}

TEST_CASE("the log of a group in which nothing is written forgets old beats, and no frame") {
  GroupRun group;
  GroupNodeRun& a = group.add_primary();
  GroupNodeRun& b = group.add_standby();
  for (int i = 0; i < 5; ++i) {
    a.write();
    group.run(10);
  }
  group.run(kEveryMs / 2);
  CHECK(group.service.compacted() == 0);
  const int64_t begun = group.service.revision();
  group.run(2 * kEveryMs);
  const int64_t first = group.service.compacted();
  CHECK(first > 0);
  CHECK(group.service.revision() - first > kEveryMs / 1000);  // the beats of the last minute
  group.run(2 * kEveryMs);
  CHECK(group.service.compacted() > first);
  CHECK(group.service.compacted() > begun);
  CHECK(group.service.frames().size() == 5);
  a.write();
  CHECK(group.until([&] { return b.last() == 6; }).has_value());
  CHECK(!b.ended.has_value());
}
