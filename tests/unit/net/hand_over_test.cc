// What may come between the wish to hand a group over and the moment at which its epoch is given
// away.
#include "net/group/hand_over.h"

#include "tests/support/test.h"

using sluice::HandOver;

TEST_CASE("a second hand-over is refused until the first one has been given up") {
  HandOver hand_over;
  REQUIRE(hand_over.claim());
  CHECK(!hand_over.claim());
  CHECK(!hand_over.is_wanted());
  REQUIRE(hand_over.start());
  hand_over.begin("b", 76, 500, true);
  CHECK(!hand_over.claim());
  CHECK(!hand_over.gives_up(499));
  CHECK(hand_over.gives_up(500));
  CHECK(!hand_over.commit());
  CHECK(hand_over.claim());
}

TEST_CASE("a hand-over may be given up before it has begun") {
  HandOver hand_over;
  CHECK(!hand_over.abort());
  REQUIRE(hand_over.claim());
  CHECK(hand_over.abort());
  CHECK(!hand_over.start());
  CHECK(!hand_over.is_wanted());
}

TEST_CASE("the end of the server does not wait for a hand-over that was only asked for") {
  HandOver hand_over;
  REQUIRE(hand_over.claim());
  hand_over.begin("", 0, INT64_MAX, false);
  CHECK(!hand_over.start());
  CHECK(!hand_over.abort());
  CHECK(hand_over.commit());
}
