// What may come between the wish to hand a group over and the moment at which its epoch is given
// away.
#include "net/group/hand_over.h"

#include <string>
#include <vector>

#include "net/group/hand_over_wish.h"
#include "tests/support/fake_group.h"
#include "tests/support/test.h"

using namespace sluice;
using test::FakeGroup;

namespace {

// n1 leads and has written far more than n3 has applied; n2 is near.
struct Wishing {
  Wishing() {
    GroupView view = *group.view();
    view.lsn = 1'000'000;
    view.members[1].lsn = view.lsn - kFewUnits;
    view.members[2].lsn = view.lsn - kFewUnits - 1;
    group.set(view);
  }

  Status check(const std::string& preferred) const {
    return check_hand_over(*group.view(), preferred, group.view()->lsn);
  }
  // Somebody asks at 1000, and waits until 1500.
  void ask(const std::string& preferred) {
    const auto then = [this](const Status& status) { answers.push_back(status.message()); };
    wish.set({preferred, hand_over.claim(), 1500, 9000, then});
  }
  // The node to which it begins; "-": it does not.
  std::string step(int64_t now_ms) {
    const auto begun = wish.step(*group.view(), hand_over, now_ms);
    return begun.has_value() ? begun->preferred : "-";
  }

  FakeGroup group;
  HandOver hand_over;
  std::vector<std::string> said;
  HandOverWish wish{[this](LogLevel, Bytes text) { said.emplace_back(text); }};
  std::vector<std::string> answers;
};

const std::string kFarBehind =
    "the node \"n3\" lacks 1001 units of the journal: until it has applied them all writes would "
    "wait. Nothing was stopped. Ask again when its offset in INFO replication is near "
    "master_repl_offset, or with a longer TIMEOUT";

}  // namespace

TEST_CASE("a hand-over may begin for a node that is near, and for no other one") {
  Wishing run;
  CHECK(run.check("").ok());
  CHECK(run.check("n2").ok());
  CHECK(run.check("n3").code() == StatusCode::kStale);
  CHECK(run.check("n3").message() == kFarBehind);
  CHECK(run.check("n1").message() == "there is no node \"n1\" that can lead");
  CHECK(run.check("n9").message() == "there is no node \"n9\" that can lead");
  GroupView view = *run.group.view();
  view.members[1].priority = 0;
  run.group.set(view);
  CHECK(run.check("n2").message() == "there is no node \"n2\" that can lead");
  CHECK(run.check("").message() == kFarBehind);
  view.members[2].priority = 0;
  run.group.set(view);
  CHECK(run.check("").message() == "no other node of the group can lead");
  view.role = GroupRole::kStandby;
  run.group.set(view);
  CHECK(run.check("").message() == "this node does not lead its group");
}

TEST_CASE("a hand-over to a node that is starting is refused, however much that one has") {
  Wishing run;
  GroupView view = *run.group.view();
  view.members[1].starting = true;
  run.group.set(view);
  const std::string starting =
      "the node \"n2\" is starting, and lacks 1000 units of the journal. Nothing was stopped. "
      "Ask "
      "again when INFO replication says state=online for it";
  CHECK(run.check("n2").code() == StatusCode::kInvalid);
  CHECK(run.check("n2").message() == starting);
  // Another one has less, and can lead.
  CHECK(run.check("").message() == kFarBehind);
  view.members.pop_back();
  run.group.set(view);
  CHECK(run.check("").message() == starting);
}

TEST_CASE("a hand-over begins when its node has come near") {
  Wishing run;
  run.ask("n3");
  CHECK(run.step(1000) == "-");
  CHECK(run.step(1499) == "-");
  CHECK(run.answers.empty());
  CHECK(run.said == std::vector<std::string>{"a hand-over waits: " + kFarBehind});
  CHECK(run.hand_over.is_asked());
  CHECK(run.hand_over.claim() == 0);
  run.group.apply(2, 999'000);
  CHECK(run.step(1499) == "n3");
  CHECK(run.answers == std::vector<std::string>{""});
  CHECK(!run.hand_over.is_asked());
  CHECK(run.step(1500) == "-");
}

// Its record is old, while much is written.
TEST_CASE("a node is near that has what the log had a second ago") {
  Wishing run;
  GroupView view = *run.group.view();
  view.lsn = 900'000;
  view.members[2].lsn = 950'000;
  run.group.set(view);
  CHECK(run.step(500) == "-");
  run.ask("n3");
  view.lsn = 1'000'000;
  run.group.set(view);
  CHECK(run.step(1000) == "n3");
  CHECK(run.step(2000) == "-");
  CHECK(check_hand_over(*run.group.view(), "n3", run.wish.near_lsn()).code() == StatusCode::kStale);
}

TEST_CASE("a hand-over to a node that does not come near in time is refused") {
  Wishing run;
  run.ask("n3");
  CHECK(run.step(1499) == "-");
  CHECK(run.step(1500) == "-");
  CHECK(run.answers == std::vector<std::string>{kFarBehind});
  CHECK(run.said.back() == "a hand-over is refused: " + kFarBehind);
  CHECK(run.hand_over.claim() != 0);
}

TEST_CASE("a hand-over that waits for a node ends when that one has gone, or it is given up") {
  for (const bool has_gone : {true, false}) {
    Wishing run;
    run.ask("n3");
    CHECK(run.step(1000) == "-");
    if (has_gone) {
      GroupView view = *run.group.view();
      view.members.pop_back();
      run.group.set(view);
    } else {
      REQUIRE(run.hand_over.abort());
      // Not even if it could begin now.
      run.group.apply(2, 1'000'000);
    }
    CHECK(run.step(1001) == "-");
    CHECK(run.answers ==
          std::vector<std::string>{has_gone ? "there is no node \"n3\" that can lead"
                                            : "the hand-over was given up before it began"});
    CHECK(run.hand_over.claim() != 0);
  }
}

// All within one turn of the group's thread.
TEST_CASE("a hand-over that waits is answered if it was given up and another one is asked for") {
  Wishing run;
  run.ask("n3");
  CHECK(run.step(1000) == "-");
  REQUIRE(run.hand_over.abort());
  run.ask("n2");
  CHECK(run.answers == std::vector<std::string>{"the hand-over was given up before it began"});
  CHECK(run.step(1001) == "n2");
  CHECK(run.answers.back().empty());
}

// SIGTERM while it waits.
TEST_CASE("the end of the server takes the place of a hand-over that waits") {
  Wishing run;
  run.ask("n3");
  CHECK(run.step(1000) == "-");
  run.hand_over.begin("", 0, INT64_MAX, false);
  run.group.apply(2, 1'000'000);
  CHECK(run.step(1001) == "-");
  CHECK(run.answers == std::vector<std::string>{"the hand-over was given up before it began"});
  CHECK(run.hand_over.commit());
}

TEST_CASE("a second hand-over is refused until the first one has been given up") {
  HandOver hand_over;
  const uint64_t asked = hand_over.claim();
  REQUIRE(asked != 0);
  CHECK(hand_over.claim() == 0);
  CHECK(!hand_over.is_wanted());
  REQUIRE(hand_over.start(asked));
  CHECK(hand_over.claim() == 0);
  CHECK(!hand_over.is_wanted());
  hand_over.begin("b", 76, 500, true);
  CHECK(hand_over.claim() == 0);
  CHECK(!hand_over.gives_up(499));
  CHECK(hand_over.gives_up(500));
  CHECK(!hand_over.commit());
  CHECK(hand_over.claim() != 0);
}

TEST_CASE("a hand-over may be given up before it has begun") {
  HandOver hand_over;
  CHECK(!hand_over.abort());
  const uint64_t asked = hand_over.claim();
  REQUIRE(asked != 0);
  CHECK(hand_over.abort());
  CHECK(!hand_over.start(asked));
  CHECK(!hand_over.is_wanted());
}

// The group's thread has just found that it has not been given up.
TEST_CASE("a hand-over that is given up as its epoch is about to be given away is not committed") {
  HandOver hand_over;
  REQUIRE(hand_over.start(hand_over.claim()));
  hand_over.begin("b", 76, 500, true);
  CHECK(!hand_over.gives_up(0));
  CHECK(hand_over.abort());
  CHECK(!hand_over.commit());
  CHECK(hand_over.gives_up(0));
}

// All within one turn of the group's thread, which then finds both.
TEST_CASE("of two hand-overs of which the first one was given up, only the second one begins") {
  HandOver hand_over;
  const uint64_t to_a = hand_over.claim();
  REQUIRE(hand_over.abort());
  const uint64_t to_b = hand_over.claim();
  REQUIRE(to_b != 0);
  CHECK(!hand_over.start(to_a));
  REQUIRE(hand_over.start(to_b));
  hand_over.begin("b", 76, 500, true);
  CHECK(hand_over.preferred() == "b");
}

TEST_CASE("the end of the server does not wait for a hand-over that was only asked for") {
  HandOver hand_over;
  const uint64_t asked = hand_over.claim();
  REQUIRE(asked != 0);
  hand_over.begin("", 0, INT64_MAX, false);
  CHECK(!hand_over.start(asked));
  CHECK(!hand_over.abort());
  CHECK(hand_over.commit());
}
