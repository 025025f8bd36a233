// What may come between the wish to hand a group over and the moment at which its epoch is given
// away.
#include "net/group/hand_over.h"

#include "tests/support/test.h"

using sluice::HandOver;

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
