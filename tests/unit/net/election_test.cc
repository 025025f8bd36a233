// The steps by which a node takes its group's epoch, each with what may come between.
// tests/model/election_test.cc plays whole histories.
#include "net/group/election.h"

#include <string>

#include "net/group/read_lease.h"
#include "tests/support/test.h"

namespace {

using namespace sluice;

using Action = Election::Action;
using Phase = Election::Phase;

constexpr int64_t kTimeoutMs = 1000;

EpochValue epoch_of(uint64_t number, const std::string& holder, bool ready = true) {
  EpochValue value;
  value.cluster_id = "c";
  value.epoch = number;
  value.holder = holder;
  value.run_id = holder.empty() ? "" : holder + "-run";
  value.ready = ready;
  return value;
}

std::string text_of(uint64_t number, const std::string& holder, bool ready = true) {
  return encode_epoch(epoch_of(number, holder, ready));
}

RemoteState state_of(const std::string& epoch, uint64_t last_seq, uint64_t beat_epoch = 0,
                     uint64_t beat_counter = 0) {
  RemoteState state;
  state.epoch = epoch;
  state.last_seq = last_seq;
  BeatValue beat;
  beat.epoch = beat_epoch;
  beat.counter = beat_counter;
  beat.seq = last_seq;
  if (beat_epoch != 0) state.beat = encode_beat(beat);
  return state;
}

RemoteAnswer done(int64_t revision = 7) {
  RemoteAnswer answer;
  answer.revision = revision;
  return answer;
}

RemoteAnswer fenced(const std::string& epoch) {
  RemoteAnswer answer;
  answer.outcome = RemoteOutcome::kFenced;
  answer.epoch = epoch;
  return answer;
}

RemoteAnswer failed(RemoteOutcome outcome = RemoteOutcome::kUnknown) {
  RemoteAnswer answer;
  answer.outcome = outcome;
  return answer;
}

void beat(Election& election, uint64_t epoch, uint64_t counter, int64_t now_ms) {
  BeatValue value;
  value.epoch = epoch;
  value.counter = counter;
  election.on_beat(value, now_ms);
}

// Node n2 of a group that n1 leads with epoch 3, up to frame 10.
struct Standby {
  explicit Standby(int64_t delay_ms = 0, bool never_takes = false)
      : election({"n2", "n2-run", kTimeoutMs, delay_ms, never_takes}) {
    REQUIRE(election.begin(state_of(text_of(3, "n1"), 10), 0).ok());
  }

  // Up to the given phase, undisturbed, at `now_ms`.
  void reach(Phase phase, int64_t now_ms = kTimeoutMs) {
    const auto there = [&] { return election.phase() == phase; };
    if (there()) return;
    REQUIRE(election.next(now_ms) == Action::kReadState);
    election.on_state(done(), state_of(text_of(3, "n1"), 10), now_ms);
    if (there()) return;
    REQUIRE(election.next(now_ms) == Action::kChangeEpoch);
    election.on_epoch_changed(done(), now_ms);
    if (there()) return;
    REQUIRE(election.next(now_ms) == Action::kReadState);
    election.on_state(done(), state_of(election.fence(), 10), now_ms);
    if (there()) return;
    REQUIRE(election.next(now_ms) == Action::kCatchUp);
    election.on_caught_up(11);
    if (there()) return;
    REQUIRE(election.next(now_ms) == Action::kTidy);
    election.on_tidied(done(), now_ms);
    if (there()) return;
    REQUIRE(election.next(now_ms) == Action::kChangeEpoch);
    election.on_epoch_changed(done(), now_ms);
    REQUIRE(there());
  }

  Election election;
};

TEST_CASE("a silent primary is succeeded in the order of the steps") {
  Standby standby;
  Election& election = standby.election;
  CHECK(election.due_ms() == kTimeoutMs);
  CHECK(election.next(kTimeoutMs - 1) == Action::kNone);
  standby.reach(Phase::kTake);
  CHECK(election.next(kTimeoutMs) == Action::kChangeEpoch);
  CHECK(election.fence() == text_of(3, "n1"));
  CHECK(election.wanted() == text_of(4, "n2", false));
  CHECK(election.next(kTimeoutMs) == Action::kNone);  // each action once
  election.on_epoch_changed(done(7), kTimeoutMs);
  CHECK(election.next(kTimeoutMs) == Action::kReadState);
  CHECK(election.revision() == 7);
  election.on_state(done(), state_of(text_of(4, "n2", false), 10), kTimeoutMs);
  standby.reach(Phase::kCatchUp);
  CHECK(election.next(kTimeoutMs) == Action::kCatchUp);
  CHECK(election.last_seq() == 10);
  election.on_caught_up(9);
  CHECK(election.next(kTimeoutMs) == Action::kTidy);
  CHECK(election.next_seq() == 9);
  CHECK(election.fence() == text_of(4, "n2", false));
  election.on_tidied(done(), kTimeoutMs);
  CHECK(election.next(kTimeoutMs) == Action::kChangeEpoch);
  CHECK(election.wanted() == text_of(4, "n2", true));
  election.on_epoch_changed(done(), kTimeoutMs);
  CHECK(election.leads());
  CHECK(election.fence() == text_of(4, "n2", true));
  CHECK(election.acknowledges_from_ms() == INT64_MIN);  // nothing was newer: nobody reads any more
}

TEST_CASE("what is newer starts the count of silence again, what is not does not") {
  Standby standby;
  Election& election = standby.election;
  election.on_frame(3, 11, 100);
  CHECK(election.due_ms() == 100 + kTimeoutMs);
  election.on_frame(3, 11, 200);
  election.on_frame(2, 12, 200);
  CHECK(election.due_ms() == 100 + kTimeoutMs);
  beat(election, 3, 5, 300);
  CHECK(election.due_ms() == 300 + kTimeoutMs);
  beat(election, 3, 5, 400);
  beat(election, 2, 6, 400);
  CHECK(election.due_ms() == 300 + kTimeoutMs);
}

TEST_CASE("the frames of a new epoch may have lower numbers, since its TIDY has removed some") {
  Standby standby;
  CHECK(standby.election.on_epoch(text_of(4, "n3"), 100).ok());
  standby.election.on_frame(4, 8, 500);
  CHECK(standby.election.due_ms() == 500 + kTimeoutMs);
}

TEST_CASE("a probe that finds something newer is not followed by TAKE") {
  for (const RemoteState& state :
       {state_of(text_of(3, "n1"), 11), state_of(text_of(3, "n1"), 10, 3, 1),
        state_of(text_of(4, "n3"), 10)}) {
    Standby standby;
    REQUIRE(standby.election.next(kTimeoutMs) == Action::kReadState);
    standby.election.on_state(done(), state, 1005);
    CHECK(standby.election.phase() == Phase::kFollow);
    CHECK(standby.election.due_ms() == 1005 + kTimeoutMs);
  }
  // Also if it was heard while the probe was on its way.
  Standby standby;
  REQUIRE(standby.election.next(kTimeoutMs) == Action::kReadState);
  beat(standby.election, 3, 1, 1002);
  standby.election.on_state(done(), state_of(text_of(3, "n1"), 10), 1005);
  CHECK(standby.election.phase() == Phase::kFollow);
}

TEST_CASE("the last beat of an earlier epoch is no sign of life") {
  Standby standby;
  REQUIRE(standby.election.next(kTimeoutMs) == Action::kReadState);
  standby.election.on_state(done(), state_of(text_of(3, "n1"), 10, 2, 99), kTimeoutMs);
  CHECK(standby.election.phase() == Phase::kTake);
}

TEST_CASE("a beat between the decision and TAKE delays acknowledgements") {
  const std::string mine = text_of(4, "n2", false);
  for (const RemoteState& state : {state_of(mine, 11), state_of(mine, 10, 3, 1)}) {
    Standby standby;
    standby.reach(Phase::kRead);
    REQUIRE(standby.election.next(1010) == Action::kReadState);
    standby.election.on_state(done(), state, 1010);
    CHECK(standby.election.acknowledges_from_ms() == 1010 + kTimeoutMs);
  }
}

TEST_CASE("a TAKE without an answer is found, and delays acknowledgements") {
  Standby standby;
  Election& election = standby.election;
  standby.reach(Phase::kTake);
  REQUIRE(election.next(1000) == Action::kChangeEpoch);
  election.on_epoch_changed(failed(), 1500);
  CHECK(election.phase() == Phase::kFollow);
  CHECK(election.due_ms() == 1500 + Election::kRetryMs);
  REQUIRE(election.next(1550) == Action::kReadState);
  election.on_state(done(), state_of(text_of(4, "n2", false), 10), 1560);
  REQUIRE(election.next(1560) == Action::kReadState);
  CHECK(election.revision() == 0);
  election.on_state(done(), state_of(text_of(4, "n2", false), 10), 1570);
  CHECK(election.phase() == Phase::kCatchUp);
  CHECK(election.acknowledges_from_ms() == 1570 + kTimeoutMs);
}

TEST_CASE("a TAKE without an answer is not tried again when the primary was heard of") {
  Standby standby;
  standby.reach(Phase::kTake);
  REQUIRE(standby.election.next(1000) == Action::kChangeEpoch);
  beat(standby.election, 3, 1, 1400);
  standby.election.on_epoch_changed(failed(), 1500);
  CHECK(standby.election.next(1550) == Action::kNone);
  CHECK(standby.election.due_ms() == 1400 + kTimeoutMs);
}

TEST_CASE("a repeated change that finds its own value is done") {
  Standby standby;
  Election& election = standby.election;
  standby.reach(Phase::kReady);
  REQUIRE(election.next(1000) == Action::kChangeEpoch);
  election.on_epoch_changed(failed(), 1100);
  CHECK(election.next(1100) == Action::kNone);
  REQUIRE(election.next(1100 + Election::kRetryMs) == Action::kChangeEpoch);
  CHECK(election.fence() == text_of(4, "n2", false));
  election.on_epoch_changed(fenced(text_of(4, "n2", true)), 1200);
  CHECK(election.leads());

  election.resign("n3");
  REQUIRE(election.next(1300) == Action::kChangeEpoch);
  CHECK(election.fence() == text_of(4, "n2", true));
  election.on_epoch_changed(failed(), 1400);
  REQUIRE(election.next(1450) == Action::kChangeEpoch);
  election.on_epoch_changed(fenced(election.wanted()), 1460);
  CHECK(election.phase() == Phase::kResigned);
}

TEST_CASE("a node that is overtaken while it takes keeps to its own epoch, and follows") {
  for (const Phase phase : {Phase::kTake, Phase::kRead, Phase::kTidy, Phase::kReady}) {
    Standby standby;
    Election& election = standby.election;
    standby.reach(phase);
    CHECK(election.on_epoch(text_of(5, "n3"), 1100).ok());
    if (phase == Phase::kTidy) {
      REQUIRE(election.next(1100) == Action::kTidy);
      CHECK(election.fence() == text_of(4, "n2", false));
      election.on_tidied(done(), 1100);  // its answer was on its way
      CHECK(election.wanted() == text_of(4, "n2", true));
    }
    const bool reads = phase == Phase::kRead;
    REQUIRE(election.next(1200) == (reads ? Action::kReadState : Action::kChangeEpoch));
    CHECK(election.fence() == (phase == Phase::kTake ? text_of(3, "n1") : text_of(4, "n2", false)));
    if (reads) {
      election.on_state(done(), state_of(text_of(5, "n3"), 10), 1200);
    } else {
      election.on_epoch_changed(fenced(text_of(5, "n3")), 1200);
    }
    CHECK(election.phase() == Phase::kFollow);
    CHECK(election.due_ms() == 1100 + kTimeoutMs);
    CHECK(election.epoch() == epoch_of(5, "n3"));
  }
}

TEST_CASE("a primary is fenced by a later epoch, not by an older text of its own") {
  Standby standby;
  standby.reach(Phase::kLead);
  CHECK(standby.election.on_epoch(text_of(4, "n2", false), 1100).ok());
  CHECK(standby.election.on_epoch(text_of(3, "n1"), 1100).ok());
  CHECK(standby.election.leads());
  CHECK(standby.election.on_epoch(text_of(5, "n3", false), 1100).ok());
  CHECK(standby.election.phase() == Phase::kFenced);

  Standby other;
  other.reach(Phase::kLead);
  other.election.on_fenced(text_of(5, "n3"), 1100);
  CHECK(other.election.phase() == Phase::kFenced);
}

TEST_CASE("after RESIGN nobody waits, and the preferred node goes first") {
  EpochValue free = epoch_of(4, "");
  free.preferred = "n2";
  Standby preferred(50);
  CHECK(preferred.election.on_epoch(encode_epoch(free), 100).ok());
  CHECK(preferred.election.due_ms() == 100);

  free.preferred = "n3";
  Standby other(50);
  Election& election = other.election;
  CHECK(election.on_epoch(encode_epoch(free), 100).ok());
  CHECK(election.due_ms() == 100 + 50 + Election::kPreferredStartMs);
  REQUIRE(election.next(450) == Action::kReadState);
  election.on_state(done(), state_of(encode_epoch(free), 12), 450);
  // Frames that were not heard of yet are no sign of life: nobody leads.
  REQUIRE(election.next(900) == Action::kReadState);
  election.on_state(done(), state_of(encode_epoch(free), 12), 900);
  REQUIRE(election.next(900) == Action::kChangeEpoch);
  election.on_epoch_changed(done(), 900);
  REQUIRE(election.next(900) == Action::kReadState);
  election.on_state(done(), state_of(text_of(5, "n2", false), 13), 900);
  CHECK(election.acknowledges_from_ms() == INT64_MIN);
}

TEST_CASE("delays, lag, and nodes that never take") {
  Standby delayed(70);
  CHECK(delayed.election.due_ms() == kTimeoutMs + 70);
  delayed.election.set_lag(Election::kLagMs + 1);
  CHECK(delayed.election.due_ms() == kTimeoutMs + 70 + Election::kLagMs);
  Standby never(0, true);
  CHECK(never.election.due_ms() == INT64_MAX);
}

TEST_CASE("while the log does not answer nobody takes, and then the count begins anew") {
  Standby standby;
  standby.election.on_log_lost();
  CHECK(standby.election.due_ms() == INT64_MAX);
  standby.election.on_log_found(5000);
  CHECK(standby.election.due_ms() == 5000 + kTimeoutMs);
  // A probe without an answer is the same.
  REQUIRE(standby.election.next(6000) == Action::kReadState);
  standby.election.on_state(failed(), {}, 6300);
  CHECK(standby.election.due_ms() == 6300 + kTimeoutMs);
}

TEST_CASE("the state is read at the present revision if that of the TAKE was compacted") {
  Standby standby;
  standby.reach(Phase::kRead);
  REQUIRE(standby.election.next(1000) == Action::kReadState);
  CHECK(standby.election.revision() == 7);
  standby.election.on_state(failed(RemoteOutcome::kCompacted), {}, 1000);
  REQUIRE(standby.election.next(1000 + Election::kRetryMs) == Action::kReadState);
  CHECK(standby.election.revision() == 0);
}

TEST_CASE("the lease of reads lasts nine tenths of the timeout from the first try") {
  ReadLease lease(kTimeoutMs);
  CHECK_FALSE(lease.holds(0));
  lease.extend(100);
  CHECK(lease.holds(999));
  CHECK_FALSE(lease.holds(1000));
  lease.extend(50);  // an older one
  CHECK(lease.remaining_ms(500) == 500);
  lease.end();
  lease.extend(2000);
  CHECK_FALSE(lease.holds(2000));
  CHECK(lease.remaining_ms(2000) == 0);
}

}  // namespace
