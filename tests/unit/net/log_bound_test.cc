// The replicated log has a bound: what is done as it fills, that it ends when the log was trimmed,
// and that a node which hangs does not keep it from that.
#include "net/group/log_bound.h"

#include <string>

#include "tests/support/fake_remote_log.h"
#include "tests/support/group_run.h"
#include "tests/support/test.h"

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr uint64_t kLimit = 400'000;
constexpr size_t kUnit = 10'000;

uint64_t kept_bytes(const FakeRemoteService& service) {
  uint64_t bytes = 0;
  for (const auto& [seq, frame] : service.frames()) bytes += frame.size();
  return bytes;
}

GroupNodeOptions bounded(size_t checkpoint_copies) {
  GroupNodeOptions options;
  options.max_log_bytes = kLimit;
  options.checkpoint_copies = checkpoint_copies;
  return options;
}

struct Bounded : GroupRun {
  explicit Bounded(uint64_t seed, size_t checkpoint_copies = 0)
      : GroupRun(seed, bounded(checkpoint_copies)) {
    REQUIRE(until([&] { return b.has_caught_up; }).has_value());
  }

  // Until the log holds so many bytes, and every live node knows it.
  void fill(GroupNodeRun& primary, uint64_t bytes) {
    while (kept_bytes(service) < bytes) {
      primary.write(kUnit);
      run(5);
    }
    run(300);
  }
  // Its newest checkpoint begins at the end.
  void make_checkpoint(GroupNodeRun& node) {
    node.checkpoint = node.last();
    node.wanted = 0;
    run(2500);
  }

  GroupNodeRun& a = add_primary();
  GroupNodeRun& b = add("b");
};

bool has_said(const GroupNodeRun& node, const std::string& part) {
  return std::any_of(node.said.begin(), node.said.end(),
                     [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

}  // namespace

TEST_CASE("every node knows how many bytes the log holds, also after trims and takeovers") {
  Bounded group(1);
  const auto all_know = [&] {
    for (const auto& node : group.nodes) {
      if (node->alive) CHECK(node->node().view()->log_bytes == kept_bytes(group.service));
    }
  };
  group.fill(group.a, 100'000);
  all_know();
  group.make_checkpoint(group.a);
  group.make_checkpoint(group.b);
  CHECK(kept_bytes(group.service) < 100'000);
  all_know();
  group.fill(group.a, 120'000);
  group.a.kill();
  REQUIRE(group.until([&] { return group.b.leads(); }).has_value());
  group.run(300);
  all_know();
  // One that joins counts from the position that the mark tells.
  const LogPosition at = group.b.position();
  GroupNodeRun& again = group.add("a", at);
  REQUIRE(group.until([&] { return again.has_caught_up; }).has_value());
  group.fill(group.b, 150'000);
  all_know();
}

TEST_CASE(
    "a filling log refuses growth, then all changes, at the primary alone; trimmed, nothing") {
  Bounded group(2);
  const auto room = [](GroupNodeRun& node) { return node.node().view()->log_room; };
  group.fill(group.a, kLimit / 2 - 4 * kUnit);
  CHECK(group.a.wanted == 0);
  CHECK(group.b.wanted == 0);
  group.fill(group.a, kLimit / 2);
  CHECK(group.a.wanted != 0);
  CHECK(group.b.wanted != 0);
  CHECK(has_said(group.a, "more than 50 % of journal-log-bytes (400000)"));
  CHECK(room(group.a) == LogRoom::kAll);
  group.fill(group.a, kLimit / 4 * 3 - 4 * kUnit);
  CHECK(room(group.a) == LogRoom::kAll);
  group.fill(group.a, kLimit / 4 * 3);
  CHECK(room(group.a) == LogRoom::kNoGrowth);
  CHECK(has_said(group.a, "more than 75 %"));
  const std::string kept_by = "the server \"a\" has no checkpoint yet";
  CHECK(has_said(group.a, "refused until it is trimmed. What keeps it: " + kept_by));
  CHECK(group.a.node().view()->log_kept_by == kept_by);
  group.fill(group.a, kLimit / 100 * 95);
  CHECK(room(group.a) == LogRoom::kNothing);
  CHECK(has_said(group.a, "more than 95 %"));
  CHECK(room(group.b) == LogRoom::kAll);
  CHECK(!has_said(group.b, "journal-log-bytes"));

  // It is so at the next primary too.
  group.a.kill();
  group.service.expire(RemoteRecordKind::kNode, "a");
  REQUIRE(group.until([&] { return group.b.leads(); }).has_value());
  group.run(20);
  CHECK(room(group.b) == LogRoom::kNothing);
  CHECK(has_said(group.b, "more than 95 %"));
  group.make_checkpoint(group.b);
  CHECK(kept_bytes(group.service) < kLimit / 4);
  CHECK(room(group.b) == LogRoom::kAll);
  CHECK(has_said(group.b, "less than 50 %"));
  CHECK(group.b.wanted == 0);
  group.b.write(kUnit);
  CHECK(group.until([&] { return group.b.acknowledged == group.b.last(); }).has_value());
}

// What a request changes is refused from there on (engine/execution/refusal.h).
TEST_CASE("a unit that is as large as the bound goes through, and is trimmed as others are") {
  Bounded group(13, 1);
  group.fill(group.a, kLimit / 10 * 7);
  group.a.write(kLimit);
  REQUIRE(group.until([&] { return group.a.acknowledged == group.a.last(); }).has_value());
  REQUIRE(group.until([&] { return group.b.last() == group.a.last(); }).has_value());
  group.run(300);
  CHECK(kept_bytes(group.service) >= kLimit / 10 * 17);
  CHECK(group.a.node().view()->log_room == LogRoom::kNothing);
  group.make_checkpoint(group.a);
  CHECK(kept_bytes(group.service) < kLimit / 4);
  CHECK(group.a.node().view()->log_room == LogRoom::kAll);
}

TEST_CASE("a node asks for a checkpoint only if its own keeps the log long") {
  Bounded group(3, 2);
  group.fill(group.a, kLimit / 2);
  group.make_checkpoint(group.a);
  CHECK(group.a.wanted == 0);
  CHECK(group.b.wanted != 0);
  // Two copies are wanted in any case, so the log stays as it is.
  CHECK(kept_bytes(group.service) >= kLimit / 2);
  CHECK(group.a.node().view()->copies() == 2);
  group.make_checkpoint(group.b);
  CHECK(kept_bytes(group.service) < kLimit / 4);
  CHECK(group.b.wanted == 0);
}

TEST_CASE("half full, one copy is enough, and the view says that there is one") {
  Bounded group(4);
  group.fill(group.a, kLimit / 2 - 3 * kUnit);
  group.make_checkpoint(group.a);
  CHECK(kept_bytes(group.service) >= kLimit / 2 - 3 * kUnit);
  group.fill(group.a, kLimit / 2);
  group.run(2500);
  CHECK(kept_bytes(group.service) < kLimit / 4);
  CHECK(group.a.node().view()->copies() == 1);
  group.make_checkpoint(group.b);
  CHECK(group.a.node().view()->copies() == 2);
}

namespace {

// A standby that has applied one unit, has as many in memory as fit, and applies none of them.
struct Behind : GroupRun {
  explicit Behind(uint64_t seed, size_t checkpoint_copies)
      : GroupRun(seed, with_little_memory(checkpoint_copies)) {
    write_on(1);
    REQUIRE(until([&] { return b.last() == 1; }).has_value());
    run(300);  // until its record says so
    b.stalled = true;
    write_on(3);
    run(500);
  }
  static GroupNodeOptions with_little_memory(size_t checkpoint_copies) {
    GroupNodeOptions options = bounded(checkpoint_copies);
    options.max_pending_bytes = kUnit;
    return options;
  }
  // The primary's checkpoint has all of it.
  void write_on(int units) {
    for (int i = 0; i < units; ++i) {
      a.write(kUnit);
      run(5);
    }
    a.checkpoint = a.last();
  }

  GroupNodeRun& a = add_primary();
  GroupNodeRun& b = add_standby();
};

}  // namespace

TEST_CASE("a standby that hangs keeps the log for some seconds and no longer; then it loads anew") {
  Behind group(10, 1);
  group.write_on(22);
  group.run(2 * GroupMembers::kReadMs);
  CHECK(kept_bytes(group.service) > 25 * kUnit);
  CHECK(group.a.node().view()->log_kept_by == "the server \"b\" has applied no more than lsn 1");
  CHECK(!has_said(group.a, "hangs"));
  group.run(3 * GroupMembers::kReadMs);
  CHECK(kept_bytes(group.service) < 10 * kUnit);
  CHECK(has_said(group.a, "the server \"b\" hangs"));
  CHECK(group.a.node().view()->log_room == LogRoom::kAll);
  CHECK(group.a.leads());
  group.b.stalled = false;
  CHECK(group.until([&] { return group.b.ended.has_value(); }).has_value());
  CHECK(group.b.reason.code() == StatusCode::kStale);
}

TEST_CASE("a standby that is slow, or was frozen for seconds, keeps the log") {
  Behind group(11, 1);
  for (int i = 0; i < 6; ++i) {
    const Lsn last = group.b.last();
    group.write_on(2);
    group.run(2 * GroupMembers::kReadMs);
    CHECK(group.service.frames().begin()->first <= group.b.position().seq + 1);
    // It applies what it has in memory.
    group.b.stalled = false;
    group.run(1);
    group.b.stalled = true;
    group.run(500);
    CHECK(group.b.last() > last);
    CHECK(group.b.last() < group.a.last());
  }
  CHECK(!has_said(group.a, "hangs"));
  group.b.stalled = false;
  REQUIRE(group.until([&] { return group.b.last() == group.a.last(); }).has_value());
  CHECK(!group.b.ended.has_value());
}

TEST_CASE(
    "of two servers of which one hangs, the other one's checkpoint is enough after a minute") {
  Behind group(12, 0);
  group.write_on(10);
  group.run(30'000);
  CHECK(kept_bytes(group.service) > 10 * kUnit);
  CHECK(
      group.a.node().view()->log_kept_by ==
      "checkpoint-copies wants the checkpoints of 2 servers, and 1 lives: the server \"b\" hangs");
  group.run(60'000);
  CHECK(kept_bytes(group.service) < 10 * kUnit);
}

TEST_CASE("a primary that was alone for a minute keeps two copies again once a standby has come") {
  GroupRun group(7, bounded(0));
  GroupNodeRun& a = group.add_primary();
  group.run(65'000);
  group.add_standby();
  for (int i = 0; i < 10; ++i) a.write(kUnit);
  group.run(300);
  a.checkpoint = a.last();
  group.run(2500);
  CHECK(kept_bytes(group.service) >= 10 * kUnit);
}

TEST_CASE("the log may fill half of the quota that etcd tells") {
  GroupRun group(5, bounded(0));
  group.service.set_members({{"the fake", true, true, "3.6.9", 1, kLimit, {}}});
  GroupNodeRun& a = group.add_primary();
  group.run(300);
  CHECK(a.node().view()->log_limit_bytes == kLimit / 2);
  CHECK(has_said(a, "Raise --quota-backend-bytes"));
  // Nothing is told: what was known stays.
  group.service.set_members({{"the fake", true, true, "3.4.23", 1, 0, {}}});
  group.run(LogBound::kAskMs + 300);
  CHECK(a.node().view()->log_limit_bytes == kLimit / 2);
  group.service.set_members({{"the fake", true, true, "3.6.9", 1, 4 * kLimit, {}}});
  group.run(LogBound::kAskMs + 300);
  CHECK(a.node().view()->log_limit_bytes == kLimit);
}

TEST_CASE("every node shows how large etcd's database is, and what it may have") {
  GroupRun group(9);
  group.service.set_members({{"one", true, true, "3.6.9", 700, 5000, {}},
                             {"another", true, false, "3.6.9", 900, 4000, {}},
                             {"away", false, false, "", 0, 0, {}}});
  GroupNodeRun& a = group.add_primary();
  GroupNodeRun& b = group.add_standby();
  group.run(300);
  for (GroupNodeRun* node : {&a, &b}) {
    CHECK(node->node().view()->etcd_bytes == 900);
    CHECK(node->node().view()->etcd_quota_bytes == 4000);
  }
  group.service.set_members({{"one", true, true, "3.4.23", 800, 0, {}}});
  group.run(LogBound::kAskMs + 300);
  CHECK(a.node().view()->etcd_bytes == 800);
}

TEST_CASE("the quota is asked for again a second after etcd has not answered") {
  FakeRemoteService service(6);
  service.set_members({{"the fake", true, true, "3.6.9", 1, kLimit, {}}});
  service.set_faults({.lost = 1});
  const std::unique_ptr<RemoteLog> log = service.connect();
  GroupInbox inbox;
  LogBound bound(*log, inbox, kLimit, {});
  const auto limit_at = [&](int64_t now) {
    bound.step(now);
    service.settle();
    inbox.run();
    return bound.limit_bytes();
  };
  CHECK(limit_at(0) == kLimit);
  CHECK(limit_at(LogBound::kAskAgainMs) == kLimit);
  service.set_faults({});
  CHECK(limit_at(2 * LogBound::kAskAgainMs - 1) == kLimit);
  CHECK(limit_at(2 * LogBound::kAskAgainMs) == kLimit / 2);
  log->close();
}

TEST_CASE("of members with different quotas the least one counts") {
  constexpr uint64_t kLarge = 4 * kLimit;
  for (const auto& [first, second] : {std::pair(kLimit, kLarge), std::pair(kLarge, kLimit)}) {
    FakeRemoteService service(8);
    service.set_members({{"one", true, true, "3.6.9", 1, first, {}},
                         {"another", true, false, "3.6.9", 1, second, {}}});
    const std::unique_ptr<RemoteLog> log = service.connect();
    GroupInbox inbox;
    LogBound bound(*log, inbox, kLarge, {});
    bound.step(0);
    service.settle();
    inbox.run();
    CHECK(bound.limit_bytes() == kLimit / 2);
    log->close();
  }
}
