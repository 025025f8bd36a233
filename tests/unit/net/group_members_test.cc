// The records of a group's processes, as one of them reads and puts them.
#include "net/group/group_members.h"

#include "tests/support/fake_remote_log.h"
#include "tests/support/test.h"

using namespace sluice;
using namespace sluice::test;

namespace {

struct MembersRun {
  MembersRun() { self.name = "a"; }
  ~MembersRun() { log->close(); }

  // What is due at this time is done, and answered.
  void step(int64_t now) {
    members.step(self, now);
    service.settle();
    inbox.run();
  }

  FakeRemoteService service{1};
  std::unique_ptr<RemoteLog> log = service.connect();
  GroupInbox inbox;
  GroupMember self;
  GroupMembers members{*log, inbox, "a directory", [](const Status&) {}};
};

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
