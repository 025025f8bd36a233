// Nodes of a group in simulated time: who begins it, who leads it, what a new primary has, and
// which directories are refused.
#include "net/group/group_node.h"

#include <string>

#include "tests/support/fake_remote_log.h"
#include "tests/support/group_run.h"
#include "tests/support/test.h"

using namespace sluice;
using namespace sluice::test;

TEST_CASE("an empty node begins the group and leads it at once; the next one follows") {
  GroupRun group;
  GroupNodeRun& a = group.add("a");
  REQUIRE(group.until([&] { return a.answers_reads(); }, 300).has_value());
  CHECK(a.node().view()->epoch == 2);
  GroupNodeRun& b = group.add("b");
  for (int i = 0; i < 20; ++i) {
    a.write();
    group.run(5);
  }
  CHECK(a.acknowledged == 20);
  REQUIRE(group.until([&] { return b.last() == 20; }, 500).has_value());
  group.run(300);
  CHECK(b.role() == GroupRole::kStandby);
  CHECK(b.has_caught_up);
  const auto view = b.node().view();
  REQUIRE(view->primary() != nullptr);
  CHECK(view->primary()->name == "a");
  CHECK(view->primary()->lsn == 20);
  CHECK(view->members.size() == 2);
}

TEST_CASE(
    "a killed primary is replaced after the failover timeout, by a node that has everything") {
  GroupRun group(2);
  GroupNodeRun& a = group.add_primary();
  GroupNodeRun& b = group.add_standby();
  for (int i = 0; i < 50; ++i) {
    a.write();
    group.run(i % 3);
  }
  group.run(50);
  const Lsn told = a.acknowledged;
  a.write();  // sent perhaps, never acknowledged
  a.kill();
  const auto took = group.until([&] { return b.answers_reads(); });
  REQUIRE(took.has_value());
  CHECK(*took >= 700);
  CHECK(*took <= 1100);
  CHECK(b.last() >= told);
  b.write();
  group.run(20);
  CHECK(b.acknowledged == b.last());
  CHECK(b.node().view()->last_takeover_ms < 100);

  // The killed one comes back as a standby, from where its local log ends.
  GroupNodeRun& again = group.add("a", {"cluster-of-a", "1", 2, 0, 0, 0});
  CHECK(group.until([&] { return again.has_caught_up && again.last() == b.last(); }).has_value());
  group.run(3000);
  CHECK(again.role() == GroupRole::kStandby);
  CHECK(b.leads());
}

TEST_CASE("a primary is not told the frames that it writes, a standby is told each") {
  GroupRun group(20);
  GroupNodeRun& a = group.add_primary();
  group.run(300);
  const auto told_by = [&](GroupNodeRun& primary) {
    const size_t told = group.service.frames_told();
    const size_t frames = group.service.frames().size();
    for (int i = 0; i < 20; ++i) {
      primary.write();
      group.run(5);
    }
    group.run(50);
    CHECK(primary.acknowledged == primary.last());
    CHECK(group.service.frames().size() > frames);
    return static_cast<double>(group.service.frames_told() - told) /
           static_cast<double>(group.service.frames().size() - frames);
  };
  CHECK(told_by(a) == 0);
  GroupNodeRun& b = group.add_standby();
  CHECK(told_by(a) == 1);
  // Also if what it follows is lost.
  group.service.lose_followers();
  group.run(500);
  CHECK(told_by(a) == 1);
  a.kill();
  REQUIRE(group.until([&] { return b.leads(); }).has_value());
  group.run(300);
  CHECK(told_by(b) == 0);
}

TEST_CASE("what changes while a node begins to lead is told to it") {
  for (int64_t delay = 0; delay < 40; ++delay) {
    GroupRun group(static_cast<uint64_t>(delay) + 1);
    GroupNodeRun& a = group.add_primary();
    GroupNodeRun& b = group.add_standby();
    group.run(300);
    a.kill();
    REQUIRE(group.until([&] { return b.role() == GroupRole::kTaking; }).has_value());
    group.run(delay);
    GroupMember other;
    other.name = "c";
    other.run_id = "c-run";
    const std::unique_ptr<RemoteLog> log = group.service.connect();
    log->put_record(RemoteRecordKind::kNode, "c", "directory-of-c", encode_member(other),
                    [](const RemoteAnswer&) {});
    log->set_pause(encode_pause({group.now + 60'000, "c", static_cast<uint64_t>(group.now)}),
                   [](const RemoteAnswer&) {});
    // Before all records are read again.
    group.run(GroupMembers::kReadMs / 10);
    CHECK(b.leads());
    CHECK(b.node().view()->find("c") != nullptr);
    CHECK(b.node().view()->paused_ms > 0);
    log->close();
  }
}

TEST_CASE("a primary that writes all the time hears of the log") {
  GroupRun group(21);
  GroupNodeRun& a = group.add_primary();
  group.run(300);
  for (int i = 0; i < 2000; ++i) {
    a.write();
    group.run(1);
    CHECK(group.now - a.node().heard_ms() < 200);
  }
}

TEST_CASE("a lone node that is started again waits for one failover timeout") {
  GroupRun group(3);
  GroupNodeRun& a = group.add_primary();
  a.write();
  group.run(20);
  const LogPosition at = a.position();
  a.kill();
  GroupNodeRun& again = group.add("a", at);
  const auto took = group.until([&] { return again.answers_reads(); });
  REQUIRE(took.has_value());
  CHECK(*took <= 1100);
  CHECK(again.last() == 1);
}

TEST_CASE("a hand-over takes no timeout, and loses nothing") {
  GroupRun group(4);
  GroupNodeRun& a = group.add_primary();
  GroupNodeRun& b = group.add("b");
  GroupNodeRun& c = group.add("c");
  REQUIRE(group.until([&] { return b.has_caught_up && c.has_caught_up; }).has_value());
  group.run(300);
  a.write();
  a.node().resign("b", 76, INT64_MAX);
  const auto took = group.until([&] { return b.answers_reads(); });
  REQUIRE(took.has_value());
  CHECK(*took <= 100);
  CHECK(a.ended == 76);
  CHECK(a.acknowledged == 1);
  CHECK(b.last() == 1);
  CHECK(c.role() == GroupRole::kStandby);
}

TEST_CASE("a hand-over that is not durable in time is given up") {
  GroupRun group(5);
  GroupNodeRun& a = group.add("a");
  REQUIRE(group.until([&] { return a.answers_reads(); }).has_value());
  a.durable = false;
  a.node().resign("", 76, group.now + 500);
  group.run(400);
  CHECK(a.writes_stopped);
  CHECK(a.role() == GroupRole::kResigning);
  group.run(200);
  CHECK(!a.writes_stopped);
  CHECK(a.answers_reads());
  CHECK(!a.ended.has_value());
}

TEST_CASE("a primary that was silent for too long ends, and tells nobody anything") {
  GroupRun group(6);
  GroupNodeRun& a = group.add_primary();
  GroupNodeRun& b = group.add_standby();
  group.run(300);
  // Stopped as by SIGSTOP: it runs nothing, and its lease ends by the clock.
  a.alive = false;
  REQUIRE(group.until([&] { return b.answers_reads(); }).has_value());
  a.alive = true;
  CHECK(!a.answers_reads());
  group.run(100);
  CHECK(a.ended == kFencedExitCode);
  CHECK(b.leads());
}

TEST_CASE("a lease of reads ends while the log is out of reach, and comes back with it") {
  GroupRun group(7);
  GroupNodeRun& a = group.add("a");
  REQUIRE(group.until([&] { return a.answers_reads(); }).has_value());
  group.service.set_stalled(true);
  const auto took = group.until([&] { return !a.answers_reads(); });
  REQUIRE(took.has_value());
  CHECK(*took <= 900);
  group.run(3000);
  CHECK(a.leads());
  group.service.set_stalled(false);
  CHECK(group.until([&] { return a.answers_reads(); }, 500).has_value());
}

TEST_CASE("a primary whose log refuses every change says why it waits") {
  GroupRun group(14);
  GroupNodeRun& a = group.add_primary();
  CHECK(a.node().view()->waits_for.empty());
  group.service.set_faults({.lost = 1});
  const auto waits = [&] { return !a.node().view()->waits_for.empty(); };
  REQUIRE(group.until(waits).has_value());
  CHECK(a.node().view()->waits_for.starts_with("the replicated log does not answer: "));
  group.run(2 * kFailoverTimeoutMs);
  CHECK(a.said.back().starts_with("waiting: the replicated log does not answer: "));
  group.service.set_faults({});
  CHECK(group.until([&] { return !waits(); }).has_value());
}

TEST_CASE("a standby that lacks a frame which the log has lost says so") {
  GroupRun group(15);
  GroupNodeRun& a = group.add_primary();
  GroupNodeRun& b = group.add_standby();
  group.run(300);
  group.service.set_faults({.event_lost = 1});
  a.write();
  REQUIRE(group.until([&] { return a.acknowledged == 1; }).has_value());
  group.service.erase_frame(1);
  group.service.set_faults({});
  a.write();
  CHECK(group.until([&] { return !b.node().view()->waits_for.empty(); }).has_value());
  CHECK(b.node().view()->waits_for.starts_with("frame 1 of the replicated log"));
  CHECK(b.said.back().starts_with("waiting: frame 1 of the replicated log"));
  CHECK(b.role() == GroupRole::kStandby);
}

// A busy primary sends no beats: only its record says how far it has come.
TEST_CASE("a standby does not take over what lacks a frame that another one's record has") {
  GroupRun group(19);
  GroupNodeRun& a = group.add_primary();
  GroupNodeRun& b = group.add_standby();
  group.run(300);
  group.service.set_faults({.event_lost = 1});
  for (int i = 0; i < 400; ++i) {
    a.write();
    group.run(1);
  }
  REQUIRE(a.acknowledged > 300);
  const auto record = [&] { return b.node().view()->primary()->lsn; };
  REQUIRE(record() > 100);
  a.kill();
  group.service.erase_frame(b.last() + 1);
  REQUIRE(decode_beat(group.service.state().beat)->lsn <= b.last());
  const size_t frames = group.service.frames().size();
  REQUIRE(group.until([&] { return b.leads() || b.ended.has_value(); }).has_value());
  CHECK(b.ended == 1);
  CHECK(b.reason.message().find("the node \"a\" has what comes up to lsn") != std::string::npos);
  CHECK(group.service.frames().size() == frames);
}

TEST_CASE("a standby that must not take over says so while nobody leads") {
  GroupRun group(16);
  GroupNodeRun& a = group.add_primary();
  GroupNodeRun& b = group.add_standby();
  b.announce("b", 1, 0);
  group.run(2 * GroupWait::kSayMs);
  CHECK(b.node().view()->waits_for.empty());
  a.kill();
  REQUIRE(group.until([&] { return !b.node().view()->waits_for.empty(); }).has_value());
  CHECK(b.node().view()->waits_for ==
        "nobody leads, and replica-priority 0 keeps this node from it");
  CHECK(b.said.back() == "waiting: nobody leads, and replica-priority 0 keeps this node from it");
  CHECK(b.role() == GroupRole::kStandby);
  b.announce("b", 1, 100);
  CHECK(group.until([&] { return b.leads(); }).has_value());
}

TEST_CASE("a standby that must not take over waits for nothing while the group is paused") {
  GroupRun group(17);
  GroupNodeRun& a = group.add_primary();
  GroupNodeRun& b = group.add_standby();
  b.announce("b", 1, 0);
  group.set_pause(10 * GroupWait::kSayMs);
  a.kill();
  group.run(5 * GroupWait::kSayMs);
  CHECK(b.node().view()->waits_for.empty());
  group.set_pause(0);
  CHECK(group.until([&] { return !b.node().view()->waits_for.empty(); }).has_value());
}

TEST_CASE("a standby of which the log is out of reach does not take it over when it is back") {
  GroupRun group(8);
  GroupNodeRun& a = group.add_primary();
  GroupNodeRun& b = group.add_standby();
  group.run(300);
  group.service.set_stalled(true);
  group.run(5000);
  group.service.set_stalled(false);
  group.run(3000);
  CHECK(a.leads());
  CHECK(b.role() == GroupRole::kStandby);
}

TEST_CASE("a node with much to apply answers and leads only when it has applied it") {
  GroupRun group(9);
  GroupNodeRun& a = group.add_primary();
  for (int i = 0; i < 200; ++i) {
    a.write();
    group.run(1);
  }
  group.run(50);
  GroupNodeRun& b = group.add("b");
  b.stalled = true;
  group.run(1000);
  CHECK(!b.has_caught_up);
  a.kill();
  group.run(3000);
  CHECK(!b.leads());
  b.stalled = false;
  REQUIRE(group.until([&] { return b.answers_reads(); }).has_value());
  CHECK(b.last() == 200);
}

TEST_CASE("a node says in its record that it is starting, until it has caught up") {
  GroupRun group(20);
  GroupNodeRun& a = group.add_primary();
  CHECK(!a.node().view()->self()->starting);
  for (int i = 0; i < 200; ++i) {
    a.write();
    group.run(1);
  }
  group.run(50);
  GroupNodeRun& b = group.add("b");
  b.stalled = true;
  const auto seen = [&] { return a.node().view()->find("b"); };
  REQUIRE(group.until([&] { return seen() != nullptr; }).has_value());
  group.run(1000);
  CHECK(seen()->starting);
  CHECK(a.node().view()->standbys() == 1);
  CHECK(a.node().view()->applied_by(0) == 0);
  b.stalled = false;
  REQUIRE(group.until([&] { return b.has_caught_up; }).has_value());
  CHECK(group.until([&] { return !seen()->starting; }, 300).has_value());
  CHECK(a.node().view()->applied_by(200) == 1);
}

TEST_CASE("a hand-over without a name goes past a node that is starting") {
  GroupRun group(21);
  GroupNodeRun& a = group.add_primary();
  GroupNodeRun& b = group.add_standby();
  for (int i = 0; i < 50; ++i) {
    a.write();
    group.run(1);
  }
  group.run(300);
  // It has as much of the log by its record, but has not applied what came last.
  GroupNodeRun& c = group.add("c");
  c.stalled = true;
  REQUIRE(group.until([&] { return a.node().view()->find("c") != nullptr; }).has_value());
  a.node().resign("", kFencedExitCode, INT64_MAX);
  const auto took = group.until([&] { return b.answers_reads(); });
  REQUIRE(took.has_value());
  CHECK(*took <= 100);
  CHECK(decode_epoch(group.service.state().epoch)->holder == "b");
}

TEST_CASE("a standby that is behind leaves the log to one that is not") {
  GroupRun group(9);
  group.begin_three(false);
  GroupNodeRun& b = *group.nodes[1];
  GroupNodeRun& c = *group.nodes[2];  // quicker than b by its delay
  c.stalled = true;
  group.nodes[0]->write();
  group.run(1500);
  group.nodes[0]->kill();
  CHECK(group.until([&] { return b.answers_reads(); }, 1300).has_value());
  CHECK(c.role() == GroupRole::kStandby);
}

// Its memory is bounded though its disk holds it up: it reads the rest from the log.
TEST_CASE("what is told to a node that does nothing is kept up to a bound") {
  GroupNodeOptions options;
  options.max_pending_bytes = 10'000;
  GroupRun group(7, options);
  GroupNodeRun& a = group.add_primary();
  GroupNodeRun& b = group.add_standby();
  group.run(300);
  b.alive = false;
  for (int i = 0; i < 400; ++i) {
    a.write(1);
    group.run(2);
  }
  REQUIRE(a.acknowledged > 390);
  b.alive = true;
  b.step();
  b.step();
  uint64_t kept = 0;
  for (const auto& [seq, frame] : group.service.frames()) {
    if (seq <= b.position().seq) kept += frame.size();
  }
  CHECK(kept > options.max_pending_bytes / 2);
  CHECK(kept <= options.max_pending_bytes);
  CHECK(group.until([&] { return b.last() == a.last(); }).has_value());
}

TEST_CASE("a takeover reads a long log in pages, as they are applied") {
  constexpr size_t kUnit = 10'000;
  constexpr size_t kMost = 5 * kUnit;
  constexpr size_t kPages = 2 * 33 * (kUnit + 100);  // one that was read, one on its way
  GroupNodeOptions options;
  options.max_pending_bytes = kMost;
  GroupRun group(6, options);
  GroupNodeRun& a = group.add_primary();
  GroupNodeRun& b = group.add_standby();
  b.stalled = true;
  for (int i = 0; i < 200; ++i) {
    a.write(kUnit);
    group.run(5);
  }
  const Lsn told = a.acknowledged;
  a.kill();
  REQUIRE(group.until([&] { return b.role() == GroupRole::kTaking; }).has_value());
  group.run(2000);
  CHECK(b.role() == GroupRole::kTaking);
  CHECK(b.most_held > kMost);
  CHECK(b.most_held < kMost + kPages);
  b.stalled = false;
  REQUIRE(group.until([&] { return b.leads(); }).has_value());
  CHECK(b.most_held < kMost + kPages);
  CHECK(b.last() >= told);
  CHECK(told > 190);
}

TEST_CASE("directories that do not belong to the group are refused in words") {
  const auto refusal_of = [](const LogPosition& begin, const EpochValue* epoch = nullptr) {
    GroupRun group(10);
    if (epoch != nullptr) group.service.put_epoch(encode_epoch(*epoch));
    GroupNodeRun& a = group.add("a", begin);
    REQUIRE(group.until([&] { return a.ended.has_value(); }, 1500).has_value());
    CHECK(a.ended == 1);
    CHECK(!a.has_caught_up);
    return a.reason.message();
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  const EpochValue epoch{"cluster-x", 5, "", "", true, "", 0};
  LogPosition data;
  data.lsn = 7;
  CHECK(has(refusal_of(data), "sluice-journal lead"));
  CHECK(has(refusal_of(data, &epoch), "empty directory"));
  CHECK(has(refusal_of({"cluster-y", "1", 5, 0, 0, 0}), "was emptied"));
  CHECK(has(refusal_of({"cluster-y", "1", 5, 0, 0, 0}, &epoch), "cluster-y"));
  CHECK(has(refusal_of({"cluster-x", "2", 5, 0, 0, 0}, &epoch), "group \"2\""));
  CHECK(has(refusal_of({"cluster-x", "1", 6, 0, 0, 0}, &epoch), "old backup"));
  // The log ends before what this node has followed.
  CHECK(has(refusal_of({"cluster-x", "1", 5, 9, 20, 77}, &epoch), "frame 9"));
  EpochValue with_base = epoch;
  with_base.base_lsn = 3;
  CHECK(has(refusal_of({}, &with_base), "lsn 3"));
}

TEST_CASE(
    "a group that begins anew while the log is out of reach is not the one that was followed") {
  GroupRun group(16);
  GroupNodeRun& a = group.add_primary();
  GroupNodeRun& b = group.add_standby();
  a.kill();
  EpochValue other;
  other.cluster_id = "cluster-y";
  other.epoch = decode_epoch(group.service.state().epoch)->epoch;
  other.ready = true;
  group.service.lose_followers();
  group.service.put_epoch(encode_epoch(other));
  REQUIRE(group.until([&] { return b.ended.has_value(); }).has_value());
  CHECK(b.reason.message().find("has the cluster id cluster-y") != std::string::npos);
}

TEST_CASE("one read of an old epoch ends no standby; the same after a second does") {
  for (const bool again : {false, true}) {
    GroupRun group(22);
    GroupNodeRun& a = group.add("a");
    REQUIRE(group.until([&] { return !group.service.state().epoch.empty(); }).has_value());
    const int64_t old = group.service.revision();
    REQUIRE(decode_epoch(group.service.state().epoch)->epoch == 1);
    REQUIRE(group.until([&] { return a.leads(); }).has_value());
    GroupNodeRun& b = group.add_standby();
    group.run(300);
    // Both read again.
    group.service.read_old(old, again ? 1000 : 2);
    group.service.lose_followers();
    group.run(Doubt::kAgainMs - 100);
    CHECK(!b.ended.has_value());
    CHECK(b.node().view()->waits_for.find("old backup") != std::string::npos);
    group.run(500);
    CHECK(b.ended.has_value() == again);
    CHECK(!a.ended.has_value());
    if (again) continue;
    a.write();
    CHECK(group.until([&] { return b.last() == 1; }).has_value());
    CHECK(b.node().view()->waits_for.empty());
  }
}

TEST_CASE("a directory is not refused because etcd seems to be empty once") {
  GroupRun group(23);
  const int64_t empty = group.service.revision();
  GroupNodeRun& a = group.add_primary();
  a.write();
  group.run(50);
  const LogPosition at = a.position();
  a.kill();
  group.service.read_old(empty, 1);
  GroupNodeRun& again = group.add("a", at);
  CHECK(group.until([&] { return again.leads(); }).has_value());
  CHECK(!again.ended.has_value());
}

TEST_CASE("a directory that begins a group does so with its data") {
  GroupRun group(11);
  GroupNodeRun& a = group.add("a", {"cluster-new", "1", 0, 0, 41, 0}, "", true);
  CHECK(group.until([&] { return a.node().view()->epoch == 2; }).has_value());
  const Result<EpochValue> epoch = decode_epoch(group.service.state().epoch);
  REQUIRE(epoch.ok());
  CHECK(epoch->cluster_id == "cluster-new");
  CHECK(epoch->base_lsn == 41);
}

// The records of nodes that ran as etcd was emptied come back before these nodes end.
TEST_CASE("an empty node does not begin a group while another one's record has data") {
  GroupRun group(18);
  GroupMember other;
  other.name = "b";
  other.run_id = "b-run";
  other.lsn = 41;
  const std::unique_ptr<RemoteLog> log = group.service.connect();
  log->put_record(RemoteRecordKind::kNode, "b", "directory-of-b", encode_member(other),
                  [](const RemoteAnswer&) {});
  REQUIRE(group.until([&] { return group.has_record("b"); }).has_value());
  GroupNodeRun& a = group.add("a");
  group.run(1000);
  CHECK(group.service.state().epoch.empty());
  CHECK(a.role() == GroupRole::kStarting);
  CHECK(a.said.back() == "waiting: the node \"b\" has data and must begin the group");
  group.service.expire(RemoteRecordKind::kNode, "b");
  CHECK(group.until([&] { return a.leads(); }).has_value());
  log->close();
}

TEST_CASE("two processes with the name of one node: the second one is refused") {
  GroupRun group(12);
  GroupNodeRun& a = group.add_primary();
  GroupNodeRun& twin = group.add("a", {}, "another-directory");
  REQUIRE(group.until([&] { return twin.ended.has_value(); }, 15'000).has_value());
  CHECK(twin.ended == 1);
  CHECK(twin.reason.message().find("node-name") != std::string::npos);
  CHECK(a.leads());
  // With a copy of the directory the second one hears that the first one lives.
  GroupNodeRun& clone = group.add("a", {}, "directory-of-a");
  CHECK(group.until([&] { return clone.ended.has_value(); }, 3000).has_value());
  CHECK(clone.reason.message().find("copy of this directory") != std::string::npos);
  group.run(3000);
  CHECK(!a.ended.has_value());
  CHECK(a.leads());
}
