// The records of a group's processes, as one of them reads and puts them.
#include "net/group/group_members.h"

#include <set>
#include <string>

#include "storage/group_keys.h"
#include "tests/support/fake_remote_log.h"
#include "tests/support/test.h"

using namespace sluice;
using namespace sluice::test;

namespace {

struct MembersRun {
  MembersRun() {
    self.name = "a";
    self.run_id = "run-1";
  }
  ~MembersRun() { log->close(); }

  // The log tells what has become of this node's record; nothing: it has vanished.
  void hear(const std::optional<std::string>& value) {
    members.on_record(RemoteRecordKind::kNode, "a", value, "a");
  }
  // Another process puts it.
  void put(const std::string& value) {
    log->put_record(RemoteRecordKind::kNode, "a", "a directory", value, [](const RemoteAnswer&) {});
    service.settle();
  }
  // The record of another node.
  void put_other(const std::string& name, const std::string& run_id, Lsn lsn) {
    GroupMember member;
    member.name = name;
    member.run_id = run_id;
    member.host = "127.0.0.1";
    member.lsn = lsn;
    log->put_record(RemoteRecordKind::kNode, name, "directory of " + name, encode_member(member),
                    [](const RemoteAnswer&) {});
    service.settle();
  }
  // Reads all records the next time that it is due, `times` times. Returns who hangs then.
  std::set<std::string> look(int times = 1) {
    for (int i = 0; i < times; ++i) {
      step(time += GroupMembers::kReadMs);
      step(time);
    }
    return members.hanging();
  }
  std::string record() {
    std::string value;
    log->read_records(RemoteRecordKind::kNode,
                      [&](const RemoteAnswer&, const std::vector<RemoteRecord>& records) {
                        for (const RemoteRecord& one : records) value = one.value;
                      });
    service.settle();
    return value;
  }
  // What is due at this time is done, and answered.
  void step(int64_t now) {
    members.step(self, now);
    service.settle();
    inbox.run();
  }

  int64_t time = 1000;  // of the last look
  FakeRemoteService service{1};
  std::unique_ptr<RemoteLog> log = service.connect();
  GroupInbox inbox;
  GroupMember self;
  std::string refusal;
  GroupMembers members{*log, inbox, "a directory", "run-1",
                       [this](const Status& status) { refusal = status.message(); }};
};

// The record of "a", as the process `run_id` puts it.
std::string record_of(const std::string& run_id) {
  GroupMember member;
  member.name = "a";
  member.run_id = run_id;
  member.host = "127.0.0.1";
  return encode_member(member);
}

}  // namespace

TEST_CASE("records that could not be read are read again after 200 ms") {
  MembersRun run;
  int64_t now = 1'000'000;
  run.service.set_faults({.lost = 1});
  run.members.read("a", now);
  run.step(now);
  CHECK(!run.members.has_read());
  // Again it fails.
  run.step(now += GroupMembers::kRecordMs);
  CHECK(!run.members.has_read());
  run.service.set_faults({});
  run.step(now + GroupMembers::kRecordMs - 1);
  CHECK(!run.members.has_read());
  run.step(now + GroupMembers::kRecordMs);
  CHECK(run.members.has_read());
}

TEST_CASE("the records of one kind do not count for those of the other") {
  MembersRun run;
  run.service.set_faults({.holds_unread = 1});
  run.members.read("a", 1000);
  run.step(1000);
  CHECK(!run.members.has_read());
  run.service.set_faults({});
  run.step(1000 + GroupMembers::kRecordMs);
  CHECK(run.members.has_read());
}

TEST_CASE("a process whose record a later one replaces puts it again") {
  MembersRun run;
  run.members.read("a", 1000);
  run.step(1000);
  run.step(1000);
  REQUIRE(run.members.is_recorded());
  run.hear(record_of("run-1"));
  run.put(record_of("run-2"));
  run.hear(record_of("run-2"));
  run.step(1000 + GroupMembers::kRecordMs);
  CHECK(run.record() == encode_member(run.self));
  CHECK(run.refusal.empty());
}

TEST_CASE("records that are read again though nothing was lost end no process") {
  MembersRun run;
  run.members.read("a", 1000);
  run.step(1000);
  run.step(1000);
  run.hear(record_of("run-1"));
  run.put(record_of("run-2"));
  run.members.read("a", 1001, false);
  run.step(1001);
  CHECK(run.members.has_read());
  CHECK(run.refusal.empty());
}

TEST_CASE("the successor is the node that is furthest, of those that can lead") {
  MembersRun run;
  CHECK(run.members.successor().empty());
  const auto hear = [&](const std::string& name, Lsn lsn, uint32_t priority,
                        bool starting = false) {
    GroupMember member;
    member.name = name;
    member.run_id = "run-of-" + name;
    member.host = "127.0.0.1";
    member.lsn = lsn;
    member.priority = priority;
    member.starting = starting;
    run.members.on_record(RemoteRecordKind::kNode, name, encode_member(member), "a");
  };
  hear("b", 10, 100);
  hear("c", 30, 100);
  hear("d", 20, 100);
  hear("e", 40, 0);
  hear("f", 50, 100, true);
  CHECK(run.members.successor() == "c");
}

TEST_CASE("a process that replaces the record of a live one is refused") {
  for (const bool is_read : {true, false}) {
    MembersRun run;
    if (is_read) run.put(record_of("run-0"));
    run.members.read("a", 1000);
    run.step(1000);
    if (!is_read) run.hear(record_of("run-0"));
    run.step(1000);
    CHECK(run.record() == encode_member(run.self));
    run.hear(record_of("run-1"));
    CHECK(run.refusal.empty());
    run.hear(record_of("run-0"));
    CHECK(run.refusal.find("was there first") != std::string::npos);
  }
}

TEST_CASE("a process that was away while another one has taken its place is refused") {
  for (const bool follows : {true, false}) {
    MembersRun run;
    run.members.read("a", 1000);
    run.step(1000);
    run.step(1000);
    run.hear(record_of("run-1"));
    run.put(record_of("run-2"));
    if (follows) {
      run.hear(std::nullopt);
      run.hear(record_of("run-2"));
      run.step(1000 + GroupMembers::kRecordMs);
      run.hear(record_of("run-1"));
      CHECK(run.refusal.empty());
      run.hear(record_of("run-2"));
    } else {
      run.members.read("a", 1001);
      run.step(1001);
    }
    CHECK(run.refusal.find("was there first") != std::string::npos);
  }
}

namespace {

using Names = std::set<std::string>;

// This node's log goes up to lsn 100, "b" stands at 40.
struct LookingRun : MembersRun {
  LookingRun() {
    self.lsn = 100;
    put_other("b", "run-b", 40);
    members.read("a", time);
    step(time);
    step(time);
    look();  // sees where the others are, and that the log has more
  }
};

}  // namespace

TEST_CASE("a node that applies nothing at three looks in a row, though there is more, hangs") {
  LookingRun run;
  CHECK(run.look(GroupMembers::kStillLooks - 1) == Names());
  CHECK(run.look() == Names{"b"});
  // One that continues does not, as soon as that is told.
  GroupMember member = run.members.others().at("b");
  member.lsn = 41;
  run.members.on_record(RemoteRecordKind::kNode, "b", encode_member(member), "a");
  CHECK(run.members.hanging() == Names());
  run.put_other("b", "run-b", 41);
  CHECK(run.look(GroupMembers::kStillLooks) == Names());
  CHECK(run.look() == Names{"b"});
  // Nor does one that is gone.
  run.members.on_record(RemoteRecordKind::kNode, "b", std::nullopt, "a");
  CHECK(run.members.hanging() == Names());
}

TEST_CASE("a node that is slow, or has applied all that there is, does not hang") {
  LookingRun run;
  run.put_other("c", "run-c", 100);
  for (Lsn lsn = 41; lsn < 60; ++lsn) {
    run.put_other("b", "run-b", lsn);
    CHECK(run.look(GroupMembers::kStillLooks) == Names());
  }
}

TEST_CASE("a process that has just begun does not hang, whatever the one before it did") {
  LookingRun run;
  REQUIRE(run.look(GroupMembers::kStillLooks) == Names{"b"});
  run.put_other("b", "run-c", 40);
  CHECK(run.look(GroupMembers::kStillLooks) == Names());
  CHECK(run.look() == Names{"b"});
  // It loads a copy, and holds the log, while the record of the one before it is still there.
  run.members.on_record(RemoteRecordKind::kHold, "b", "40", "a");
  CHECK(run.members.hanging() == Names());
}

TEST_CASE("looks that come at once, or that etcd does not answer, make no node hang") {
  LookingRun run;
  for (int i = 0; i < 3 * GroupMembers::kStillLooks; ++i) {
    run.members.read("a", ++run.time);
    run.step(run.time);
  }
  CHECK(run.members.hanging() == Names());
  run.service.set_faults({.lost = 1});
  CHECK(run.look(3 * GroupMembers::kStillLooks) == Names());
  run.service.set_faults({});
  // Also after a long pause of this process.
  run.time += 100 * GroupMembers::kReadMs;
  CHECK(run.look() == Names());
}
