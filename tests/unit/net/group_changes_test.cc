// Nodes of a group over a fake log, in simulated time: what comes in between while one takes over
// or leads: it is stopped, the group is paused, it serves nobody, what is told of it changes.
#include <string>

#include "tests/support/group_run.h"

using namespace sluice;
using namespace sluice::test;

namespace {

// So many that the log is trimmed behind a checkpoint.
void write_frames(GroupRun& group, GroupNodeRun& primary) {
  for (uint64_t i = 0; i < 3 * LogTrim::kStepFrames; ++i) {
    primary.write();
    group.run(5);
  }
}

}  // namespace

TEST_CASE("a node that is stopped while it takes over leaves the group to the next one at once") {
  int stopped = 0;
  for (uint64_t seed = 20; seed < 44; ++seed) {
    GroupRun group(seed);
    const bool stalled = seed % 2 == 0;  // has the epoch, and has not applied everything
    group.begin_three(stalled);
    group.nodes[0]->kill();
    GroupNodeRun& taker = group.taker();
    group.run(static_cast<int64_t>(seed - 20) / 2);
    if (taker.role() != GroupRole::kTaking) continue;
    ++stopped;
    taker.node().resign("", 0, INT64_MAX);
    GroupNodeRun& other = *group.nodes[&taker == group.nodes[1].get() ? 2 : 1];
    other.stalled = false;
    const auto took = group.until([&] { return other.answers_reads(); });
    REQUIRE(took.has_value());
    CHECK(*took <= 250);
    CHECK(taker.ended == 0);
    CHECK(!taker.leads());
    CHECK(other.last() == 1);
  }
  CHECK(stopped >= 12);
}

TEST_CASE("a node that is stopped while it takes over ends also if another one was first") {
  for (uint64_t seed = 50; seed < 60; ++seed) {
    GroupRun group(seed);
    group.begin_three(false);
    group.nodes[0]->kill();
    GroupNodeRun& taker = group.taker();
    taker.node().resign("", 0, INT64_MAX);
    Result<EpochValue> epoch = decode_epoch(group.service.state().epoch);
    REQUIRE(epoch.ok());
    ++epoch->epoch;
    epoch->holder = "x";
    epoch->run_id = "run-of-x";
    group.service.put_epoch(encode_epoch(*epoch));
    group.run(100);
    CHECK(taker.ended == 0);
  }
}

// It has written nothing yet: if it was asked to stop meanwhile, it does as it was asked.
TEST_CASE("a node that loses the epoch as it becomes ready ends") {
  for (uint64_t seed = 60; seed < 80; ++seed) {
    GroupRun group(seed);
    group.begin_three(false);
    group.nodes[0]->kill();
    GroupNodeRun& taker = group.taker();
    const bool is_asked = seed % 2 == 0;
    if (is_asked) taker.node().resign("", 0, INT64_MAX);
    Result<EpochValue> epoch = decode_epoch(group.service.state().epoch);
    while (epoch.ok() && !(epoch->holder != "a" && epoch->ready)) {
      group.service.step();
      for (const auto& node : group.nodes) node->step();
      epoch = decode_epoch(group.service.state().epoch);
    }
    REQUIRE(epoch.ok());
    ++epoch->epoch;
    epoch->holder = "x";
    epoch->run_id = "run-of-x";
    group.service.put_epoch(encode_epoch(*epoch));
    group.run(100);
    CHECK(taker.ended == (is_asked ? 0 : kFencedExitCode));
  }
}

TEST_CASE("a standby past which the log was trimmed while it was stopped ends, to load anew") {
  GroupNodeOptions options;
  options.checkpoint_copies = 1;
  GroupRun group(17, options);
  GroupNodeRun& a = group.add_primary();
  GroupNodeRun& b = group.add_standby();
  group.run(300);
  b.alive = false;
  group.service.expire(RemoteRecordKind::kNode, "b");
  group.service.set_faults({.event_lost = 1});
  write_frames(group, a);
  a.checkpoint = a.last();
  REQUIRE(group.until([&] { return !group.service.state().trim.empty(); }).has_value());
  group.run(300);
  b.alive = true;
  REQUIRE(group.until([&] { return b.ended.has_value(); }).has_value());
  CHECK(b.reason.code() == StatusCode::kStale);
  CHECK(b.last() == 0);
  CHECK(a.leads());
}

TEST_CASE("a primary knows that a standby's checkpoints need values, and when they no longer do") {
  GroupRun group(18);
  GroupNodeRun& a = group.add_primary();
  GroupNodeRun& b = group.add_standby();
  group.run(2000);
  const auto wanted = [&] {
    const GroupMember* const member = a.node().view()->find("b");
    return member != nullptr && member->wants_values;
  };
  CHECK(!wanted());
  b.wants_values = true;
  CHECK(group.until([&] { return wanted(); }, 500).has_value());
  b.wants_values = false;
  CHECK(group.until([&] { return !wanted(); }, 500).has_value());
  b.wants_values = true;
  REQUIRE(group.until([&] { return wanted(); }, 500).has_value());
  b.kill();
  group.service.expire(RemoteRecordKind::kNode, "b");
  CHECK(group.until([&] { return !wanted(); }, 500).has_value());
}

TEST_CASE("a record of which nothing was told is found out in some seconds") {
  GroupRun group(13);
  GroupNodeRun& a = group.add_primary();
  group.service.set_faults({.record_lost = 1});
  GroupNodeRun& b = group.add("b");
  const auto members = [&] { return a.node().view()->members.size(); };
  CHECK(group.until([&] { return members() == 2; }, 6000).has_value());
  b.kill();
  group.service.expire(RemoteRecordKind::kNode, "b");
  CHECK(group.until([&] { return members() == 1; }, 6000).has_value());
  group.service.expire(RemoteRecordKind::kNode, "a");
  CHECK(!group.has_record("a"));
  group.run(6000);
  CHECK(group.has_record("a"));
}

TEST_CASE("in a paused group no other node takes over, until the pause ends") {
  for (const bool expires : {true, false}) {
    GroupRun group(expires ? 14 : 15);
    group.begin_three(false);
    GroupNodeRun& a = *group.nodes[0];
    GroupNodeRun& b = *group.nodes[1];
    GroupNodeRun& c = *group.nodes[2];
    group.set_pause(10'000);
    group.run(200);
    CHECK(a.node().view()->paused_ms > 9000);
    CHECK(b.node().view()->paused_ms > 9000);
    CHECK(a.answers_reads());
    a.kill();
    group.run(5000);
    CHECK(b.role() == GroupRole::kStandby);
    CHECK(c.role() == GroupRole::kStandby);
    if (!expires) group.set_pause(0);
    const auto took = group.until([&] { return b.answers_reads() || c.answers_reads(); });
    REQUIRE(took.has_value());
    CHECK(*took >= (expires ? 4500 : 0));
    CHECK(*took <= (expires ? 6200 : 1200));
  }
}

TEST_CASE("a pause that nobody was told of counts, as the last look shows it") {
  GroupRun group(16);
  group.begin_three(false);
  group.service.set_faults({.pause_lost = 1});
  group.set_pause(20'000);
  group.nodes[0]->kill();
  group.run(5000);
  CHECK(!group.nodes[1]->leads());
  CHECK(!group.nodes[2]->leads());
  // So does its end.
  group.set_pause(0);
  CHECK(group.until([&] { return group.nodes[1]->leads() || group.nodes[2]->leads(); }, 1500)
            .has_value());
}

TEST_CASE("a paused group is handed over, and a primary that starts again leads it") {
  GroupRun group(17);
  group.begin_three(false);
  group.set_pause(3'600'000);
  GroupNodeRun& a = *group.nodes[0];
  const LogPosition at = a.position();
  a.node().resign("c", 76, INT64_MAX);
  GroupNodeRun& c = *group.nodes[2];
  const auto took = group.until([&] { return c.answers_reads(); });
  REQUIRE(took.has_value());
  CHECK(*took <= 100);
  c.kill();
  group.run(3000);
  CHECK(!group.nodes[1]->leads());
  GroupNodeRun& again = group.add("c", at);
  CHECK(group.until([&] { return again.answers_reads(); }, 3000).has_value());
  CHECK(!group.nodes[1]->leads());
}

TEST_CASE("a primary that serves nobody sends no beats, so that another node takes over") {
  GroupRun group(18);
  group.begin_three(false);
  GroupNodeRun& a = *group.nodes[0];
  a.stuck = true;
  REQUIRE(group.until([&] { return !a.answers_reads(); }, 1200).has_value());
  REQUIRE(group.until([&] { return group.nodes[1]->leads() || group.nodes[2]->leads(); }, 1500)
              .has_value());
  group.run(100);
  CHECK(a.ended == kFencedExitCode);
}

TEST_CASE("what is told of a node changes while it runs, and whether it takes over") {
  GroupRun group(19);
  GroupNodeRun& a = group.add_primary();
  GroupNodeRun& b = group.add_standby();
  b.announce("10.0.0.2", 7000, 0, "1a2b");
  group.run(500);
  const auto view = a.node().view();
  const GroupMember* const told = view->find("b");
  REQUIRE(told != nullptr);
  CHECK(told->host == "10.0.0.2");
  CHECK(told->port == 7000);
  CHECK(told->priority == 0);
  CHECK(told->config_mark == "1a2b");
  CHECK(b.node().view()->unlinked_ms < 1000);
  a.kill();
  group.service.expire(RemoteRecordKind::kNode, "a");
  group.run(5000);
  CHECK(!b.leads());
  REQUIRE(group.until([&] { return !b.node().view()->is_led(); }).has_value());
  const int64_t unlinked_ms = b.node().view()->unlinked_ms;
  group.run(3000);
  CHECK(b.node().view()->unlinked_ms >= unlinked_ms + 2900);
  b.announce("10.0.0.2", 7000, 1);
  CHECK(group.until([&] { return b.leads(); }, 1500).has_value());
}

// By an APPEND whose first try arrives when a retry was acknowledged, and its frame trimmed: the
// epoch is still the same, and nothing is at its number.
TEST_CASE("a frame that comes back after it was trimmed does not make a log whole") {
  GroupNodeOptions options;
  options.checkpoint_copies = 1;
  GroupRun group(3, options);
  GroupNodeRun& a = group.add_primary();
  a.write();
  group.run(100);
  const LogPosition at = a.position();  // of a standby that was stopped then
  const std::string frame = group.service.frames().at(at.seq);
  write_frames(group, a);
  a.checkpoint = a.last();
  REQUIRE(group.until([&] { return group.service.frames().count(at.seq) == 0; }).has_value());
  const std::unique_ptr<RemoteLog> late = group.service.connect();
  late->append(group.service.state().epoch, at.seq, std::make_shared<const std::string>(frame),
               [](const RemoteAnswer&) {});
  REQUIRE(group.until([&] { return group.service.frames().count(at.seq) != 0; }).has_value());
  GroupNodeRun& b = group.add("b", at);
  REQUIRE(group.until([&] { return b.ended.has_value(); }).has_value());
  CHECK(b.reason.code() == StatusCode::kStale);
  late->close();
}

TEST_CASE("a stall of etcd does not cost a healthy primary its epoch") {
  for (int64_t stalled_ms = 800; stalled_ms <= 2600; stalled_ms += 100) {
    for (const uint64_t seed : {1, 2, 3, 4}) {
      GroupRun group(seed);
      GroupNodeRun& a = group.add_primary();
      group.add_standby();
      group.run(300 + 37 * static_cast<int64_t>(seed));
      group.service.set_stalled(true);
      group.run(stalled_ms);
      group.service.set_stalled(false);
      group.run(3000);
      CHECK_MESSAGE(!a.ended.has_value(), "stalled for ", stalled_ms, " ms");
    }
  }
}

TEST_CASE("a standby whose etcd is restored from an old backup ends, and says so") {
  GroupRun group(20);
  GroupNodeRun& a = group.add_primary();
  GroupNodeRun& b = group.add_standby();
  group.run(300);
  const std::string old = group.service.state().epoch;
  a.kill();
  REQUIRE(group.until([&] { return b.leads(); }).has_value());
  GroupNodeRun& c = group.add("c");
  REQUIRE(group.until([&] { return c.has_caught_up; }).has_value());
  group.run(300);
  b.kill();
  group.service.put_epoch(old);
  group.service.lose_followers();
  REQUIRE(group.until([&] { return c.ended.has_value(); }).has_value());
  CHECK(c.ended == 1);
  CHECK_MESSAGE(c.reason.message().find("etcd was restored from an old backup. \"sluice-journal "
                                        "lead DIR\" begins a new group") != std::string::npos,
                c.reason.message());
}

// Until a lost answer to its TAKE was repeated the last primary may have led.
TEST_CASE("a primary whose TAKE was late acknowledges nothing before the old lease is over") {
  for (const bool late : {false, true}) {
    GroupRun group(23);
    GroupNodeRun& a = group.add_primary();
    GroupNodeRun& b = group.add_standby();
    group.run(300);
    a.kill();
    REQUIRE(group.until([&] { return b.role() == GroupRole::kTaking; }).has_value());
    group.service.set_faults({.unanswered = late ? 1.0 : 0.0});
    group.run(20);
    group.service.set_faults({});
    REQUIRE(group.until([&] { return b.leads(); }).has_value());
    // The machine may hold the process up meanwhile.
    CHECK((b.acknowledges_in > std::chrono::milliseconds(kFailoverTimeoutMs / 2)) == late);
  }
}

TEST_CASE("a beat that is answered late extends the lease of reads from when it was sent") {
  GroupRun group(24);
  GroupNodeRun& a = group.add("a");
  REQUIRE(group.until([&] { return a.answers_reads(); }).has_value());
  group.run(300);
  group.service.set_stalled(true);
  group.run(500);
  const int64_t left_ms = a.lease_ms();
  REQUIRE(left_ms > 0);
  group.service.set_stalled(false);
  REQUIRE(group.until([&] { return a.lease_ms() > left_ms; }).has_value());
  // It was sent within the first 200 ms.
  CHECK(a.lease_ms() <= kFailoverTimeoutMs * 9 / 10 - 250);
}

TEST_CASE("a primary has no lease of reads from the moment at which it gives its epoch away") {
  GroupRun group(25);
  GroupNodeRun& a = group.add_primary();
  group.add_standby();
  group.run(300);
  REQUIRE(a.lease_ms() > 500);
  group.service.set_stalled(true);
  a.node().resign("b", kFencedExitCode, INT64_MAX);
  CHECK(group.until([&] { return a.lease_ms() == 0; }, 100).has_value());
  CHECK(!a.ended.has_value());
  group.service.set_stalled(false);
  CHECK(group.until([&] { return a.ended == kFencedExitCode; }).has_value());
}

TEST_CASE("a primary that resigns hands over to a node that may lead") {
  GroupRun group(20);
  group.begin_three(false);
  group.nodes[1]->announce("127.0.0.1", 7000, 0);
  group.run(500);
  group.nodes[0]->node().resign("", kFencedExitCode, INT64_MAX);
  const auto took = group.until([&] { return group.nodes[2]->answers_reads(); });
  REQUIRE(took.has_value());
  CHECK(*took <= 100);
}

TEST_CASE("a hold that cannot be read keeps the whole log, until it is gone") {
  GroupNodeOptions options;
  options.checkpoint_copies = 1;
  GroupRun group(21, options);
  GroupNodeRun& a = group.add_primary();
  const std::unique_ptr<RemoteLog> log = group.service.connect();
  bool is_put = false;
  log->put_record(RemoteRecordKind::kHold, "x", "", "what",
                  [&](const RemoteAnswer&) { is_put = true; });
  REQUIRE(group.until([&] { return is_put; }).has_value());
  write_frames(group, a);
  a.checkpoint = a.last();
  group.run(5000);
  CHECK(group.service.state().trim.empty());
  group.service.expire(RemoteRecordKind::kHold, "x");
  CHECK(group.until([&] { return !group.service.state().trim.empty(); }).has_value());
  log->close();
}

TEST_CASE("nothing is trimmed before the holds were read") {
  GroupNodeOptions options;
  options.checkpoint_copies = 1;
  GroupRun group(22, options);
  GroupNodeRun& a = group.add_primary();
  a.write();
  group.run(100);
  const LogPosition at = a.position();
  a.kill();
  group.service.expire(RemoteRecordKind::kNode, "a");
  const std::unique_ptr<RemoteLog> log = group.service.connect();
  log->put_record(RemoteRecordKind::kHold, "x", "", "1", [](const RemoteAnswer&) {});
  group.run(100);
  // It was put before the next primary begins, which is not told of it.
  group.service.set_faults({.holds_unread = 1});
  GroupNodeRun& again = group.add("a", at);
  REQUIRE(group.until([&] { return again.leads(); }).has_value());
  write_frames(group, again);
  again.checkpoint = again.last();
  group.run(3000);
  CHECK(group.service.state().trim.empty());
  group.service.set_faults({});
  group.run(3000);
  const Result<LogPosition> mark = decode_position(group.service.state().trim);
  CHECK((!mark.ok() || mark->lsn <= 1));
  group.service.expire(RemoteRecordKind::kHold, "x");
  const auto trimmed = [&] {
    const Result<LogPosition> now = decode_position(group.service.state().trim);
    return now.ok() && now->lsn > 1;
  };
  CHECK(group.until(trimmed).has_value());
  log->close();
}
