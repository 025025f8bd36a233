// When a node takes its group's epoch, and what may come between.
// tests/model/election_history_test.cc plays whole histories.
#include "net/group/election.h"

#include <string>

#include "net/group/read_lease.h"
#include "tests/support/test.h"

namespace {

using namespace sluice;

using Action = Election::Action;
using Phase = Election::Phase;

constexpr int64_t kTimeoutMs = 1000;
constexpr int64_t kFirstProbeMs = kTimeoutMs - Election::kBetweenProbesMs;

EpochValue epoch_of(uint64_t number, const std::string& holder, bool ready = true) {
  EpochValue value;
  value.cluster_id = "c";
  value.epoch = number;
  value.holder = holder;
  value.failover_timeout_ms = holder.empty() ? 0 : kTimeoutMs;
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

RemoteAnswer failed(RemoteOutcome outcome = RemoteOutcome::kUnknown) {
  RemoteAnswer answer;
  answer.outcome = outcome;
  return answer;
}

TakeoverResult taken(const RemoteState& found, bool late = false) {
  TakeoverResult result;
  result.fence = text_of(4, "n2", true);
  result.found = found;
  result.late = late;
  return result;
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
      : election({"n2", "n2-run", kTimeoutMs, delay_ms}) {
    election.set_never_takes(never_takes);
    REQUIRE(election.begin(state_of(text_of(3, "n1"), 10), 0).ok());
  }

  void decide_to_take() {
    look(state_of(text_of(3, "n1"), 10), kFirstProbeMs);
    REQUIRE(election.next(kTimeoutMs) == Action::kProbe);
    election.on_probed(done(), state_of(text_of(3, "n1"), 10), kTimeoutMs);
    REQUIRE(election.next(kTimeoutMs) == Action::kTake);
  }
  void lead() {
    decide_to_take();
    election.on_taken(taken(state_of(text_of(4, "n2", false), 10)), kTimeoutMs);
    REQUIRE(election.leads());
  }

  // As an epoch begins, and before silence has lasted for the timeout.
  void look(const RemoteState& state, int64_t now_ms) {
    REQUIRE(election.next(now_ms) == Action::kProbe);
    election.on_probed(done(), state, now_ms);
    REQUIRE(election.phase() == Phase::kFollow);
  }

  Election election;
};

TEST_CASE("a silent primary is succeeded") {
  Standby standby;
  Election& election = standby.election;
  CHECK(election.due_ms() == kFirstProbeMs);
  CHECK(election.next(kFirstProbeMs - 1) == Action::kNone);
  standby.decide_to_take();
  CHECK(election.next(kTimeoutMs) == Action::kNone);  // each action once
  CHECK(election.fence() == text_of(3, "n1"));
  CHECK(election.mine() == epoch_of(4, "n2", false));
  election.on_taken(taken(state_of(text_of(4, "n2", false), 10)), 1020);
  CHECK(election.leads());
  CHECK(election.fence() == text_of(4, "n2", true));
  CHECK(election.epoch() == epoch_of(4, "n2", true));
  CHECK(election.acknowledges_from_ms() == INT64_MIN);  // nobody answers reads any more
}

TEST_CASE("a primary with a longer timeout, and so a longer lease, is waited for") {
  EpochValue of_n1 = epoch_of(3, "n1");
  of_n1.failover_timeout_ms = 3 * kTimeoutMs;
  const std::string text = encode_epoch(of_n1);
  Standby standby;
  Election& election = standby.election;
  REQUIRE(election.begin(state_of(text, 10), 0).ok());
  constexpr int64_t kFirstMs = 3 * kTimeoutMs - Election::kBetweenProbesMs;
  CHECK(election.due_ms() == kFirstMs);
  standby.look(state_of(text, 10), kFirstMs);
  REQUIRE(election.next(3 * kTimeoutMs) == Action::kProbe);
  election.on_probed(done(), state_of(text, 10), 3 * kTimeoutMs);
  REQUIRE(election.next(3 * kTimeoutMs) == Action::kTake);
  CHECK(election.mine().failover_timeout_ms == kTimeoutMs);
  // It was heard of after the decision: its lease, not this node's, must be over.
  election.on_taken(taken(state_of(text_of(4, "n2", false), 11)), 3010);
  CHECK(election.acknowledges_from_ms() == 3010 + 3 * kTimeoutMs);
}

TEST_CASE("what is newer starts the count of silence again, what is not does not") {
  Standby standby;
  Election& election = standby.election;
  election.on_frame(3, 11, 100);
  CHECK(election.due_ms() == 100 + kFirstProbeMs);
  election.on_frame(3, 11, 200);
  election.on_frame(2, 12, 200);
  CHECK(election.due_ms() == 100 + kFirstProbeMs);
  beat(election, 3, 5, 300);
  CHECK(election.due_ms() == 300 + kFirstProbeMs);
  beat(election, 3, 5, 400);
  beat(election, 2, 6, 400);
  CHECK(election.due_ms() == 300 + kFirstProbeMs);
}

TEST_CASE("the frames of a new epoch may have lower numbers, since its TIDY has removed some") {
  Standby standby;
  CHECK(standby.election.on_epoch(text_of(4, "n3"), 100).ok());
  standby.look(state_of(text_of(4, "n3"), 7), 100);
  standby.election.on_frame(4, 8, 500);
  CHECK(standby.election.due_ms() == 500 + kFirstProbeMs);

  // The state was read between TAKE and TIDY.
  Election late({"n2", "n2-run", kTimeoutMs, 0});
  REQUIRE(late.begin(state_of(text_of(4, "n3", false), 400), 0).ok());
  CHECK(late.on_epoch(text_of(4, "n3", true), 100).ok());
  REQUIRE(late.next(100) == Action::kProbe);
  late.on_probed(done(), state_of(text_of(4, "n3", false), 400), 100);
  REQUIRE(late.next(110) == Action::kProbe);
  late.on_probed(done(), state_of(text_of(4, "n3", true), 10), 110);
  late.on_frame(4, 11, 200);
  CHECK(late.due_ms() == 200 + kFirstProbeMs);
}

TEST_CASE("the state is read as an epoch begins, and its first probe knows what is newer") {
  Standby standby;
  Election& election = standby.election;
  for (const bool ready : {false, true}) {
    const std::string text = text_of(4, "n3", ready);
    CHECK(election.on_epoch(text, 100).ok());
    CHECK(election.due_ms() == 100);
    standby.look(state_of(text, 12), 110);
    CHECK(election.due_ms() == 110 + kFirstProbeMs);
  }
  standby.look(state_of(text_of(4, "n3"), 12), 110 + kFirstProbeMs);
  REQUIRE(election.next(110 + kTimeoutMs) == Action::kProbe);
  election.on_probed(done(), state_of(text_of(4, "n3"), 12), 120 + kTimeoutMs);
  CHECK(election.phase() == Phase::kTake);

  // A look that finds nothing new is not followed by TAKE, and one without an answer by another.
  Standby other;
  CHECK(other.election.on_epoch(text_of(4, "n3"), 100).ok());
  REQUIRE(other.election.next(100) == Action::kProbe);
  other.election.on_probed(failed(), {}, 400);
  CHECK(other.election.phase() == Phase::kFollow);
  other.look(state_of(text_of(4, "n3"), 0), 410);
  CHECK(other.election.due_ms() == 410 + kFirstProbeMs);
}

TEST_CASE("a probe that finds something newer is not followed by TAKE") {
  for (const bool first : {true, false}) {
    for (const RemoteState& state :
         {state_of(text_of(3, "n1"), 11), state_of(text_of(3, "n1"), 10, 3, 1),
          state_of(text_of(4, "n3"), 10)}) {
      Standby standby;
      if (!first) standby.look(state_of(text_of(3, "n1"), 10), kFirstProbeMs);
      REQUIRE(standby.election.next(kTimeoutMs) == Action::kProbe);
      standby.election.on_probed(done(), state, 1005);
      CHECK(standby.election.phase() == Phase::kFollow);
      CHECK(standby.election.due_ms() == 1005 + kFirstProbeMs);
    }
  }
  // Also if it was heard while the probe was on its way.
  Standby standby;
  standby.look(state_of(text_of(3, "n1"), 10), kFirstProbeMs);
  REQUIRE(standby.election.next(kTimeoutMs) == Action::kProbe);
  beat(standby.election, 3, 1, 1002);
  standby.election.on_probed(done(), state_of(text_of(3, "n1"), 10), 1005);
  CHECK(standby.election.phase() == Phase::kFollow);
}

// After an outage of the log, this node may reach it before the primary does.
TEST_CASE("between the two probes a primary has time to be heard of") {
  Standby standby;
  Election& election = standby.election;
  standby.look(state_of(text_of(3, "n1"), 10), kFirstProbeMs);
  CHECK(election.due_ms() == kTimeoutMs);
  beat(election, 3, 1, 900);
  CHECK(election.due_ms() == 900 + kFirstProbeMs);
  // The first one was late: so is the second one.
  standby.look(state_of(text_of(3, "n1"), 10), 5000);
  CHECK(election.due_ms() == 5000 + Election::kBetweenProbesMs);
}

TEST_CASE("the last beat of an earlier epoch is no sign of life") {
  Standby standby;
  const RemoteState state = state_of(text_of(3, "n1"), 10, 2, 99);
  standby.look(state, kFirstProbeMs);
  REQUIRE(standby.election.next(kTimeoutMs) == Action::kProbe);
  standby.election.on_probed(done(), state, kTimeoutMs);
  CHECK(standby.election.phase() == Phase::kTake);
}

TEST_CASE("a beat or a frame between the decision and TAKE delays acknowledgements") {
  const std::string mine = text_of(4, "n2", false);
  for (const RemoteState& state : {state_of(mine, 11), state_of(mine, 10, 3, 1)}) {
    Standby standby;
    standby.decide_to_take();
    beat(standby.election, 3, 1, 1005);  // also if it was heard of since
    standby.election.on_taken(taken(state), 1010);
    CHECK(standby.election.acknowledges_from_ms() == 1010 + kTimeoutMs);
  }
}

TEST_CASE("a TAKE that was found to be done only later delays acknowledgements") {
  Standby standby;
  standby.decide_to_take();
  standby.election.on_taken(taken(state_of(text_of(4, "n2", false), 10), true), 1570);
  CHECK(standby.election.acknowledges_from_ms() == 1570 + kTimeoutMs);
}

TEST_CASE("a node that is overtaken while it takes follows") {
  Standby standby;
  Election& election = standby.election;
  standby.decide_to_take();
  CHECK(election.on_epoch(text_of(5, "n3"), 1100).ok());
  CHECK(election.phase() == Phase::kTake);
  TakeoverResult lost;
  lost.status = {StatusCode::kLocked, "another node has it"};
  election.on_taken(lost, 1200);
  CHECK(election.phase() == Phase::kFollow);
  CHECK(election.epoch() == epoch_of(5, "n3"));
  standby.look(state_of(text_of(5, "n3"), 10), 1200);
  CHECK(election.due_ms() == 1200 + kFirstProbeMs);

  // Its last answer may come after the news.
  Standby other;
  other.decide_to_take();
  CHECK(other.election.on_epoch(text_of(5, "n3"), 1100).ok());
  other.election.on_taken(taken(state_of(text_of(4, "n2", false), 10)), 1200);
  CHECK(other.election.phase() == Phase::kFenced);
}

// etcd was slow, perhaps for the primary too.
TEST_CASE("a probe that was answered late is not followed by TAKE, and the count begins anew") {
  for (const int64_t took_ms : {kTimeoutMs / 2, kTimeoutMs / 2 + 1}) {
    Standby standby;
    Election& election = standby.election;
    const RemoteState state = state_of(text_of(3, "n1"), 10);
    standby.look(state, kFirstProbeMs);
    REQUIRE(election.next(kTimeoutMs) == Action::kProbe);
    const int64_t answered_ms = kTimeoutMs + took_ms;
    election.on_probed(done(), state, answered_ms);
    const bool late = took_ms > kTimeoutMs / 2;
    CHECK(election.phase() == (late ? Phase::kFollow : Phase::kTake));
    if (late) CHECK(election.due_ms() == answered_ms + kFirstProbeMs);
  }
}

TEST_CASE("a node whose state is not the log's never takes again") {
  Standby standby;
  standby.decide_to_take();
  TakeoverResult stale;
  stale.status = {StatusCode::kStale, "the log begins behind it"};
  standby.election.on_taken(stale, 1100);
  CHECK(standby.election.phase() == Phase::kFailed);
  CHECK(standby.election.next(1'000'000) == Action::kNone);
}

TEST_CASE("RESIGN is repeated until it is known") {
  Standby standby;
  Election& election = standby.election;
  standby.lead();
  election.resign("n3", 1200);
  REQUIRE(election.next(1300) == Action::kResign);
  CHECK(election.fence() == text_of(4, "n2", true));
  EpochValue free = epoch_of(5, "", false);
  free.preferred = "n3";
  CHECK(election.mine() == free);
  election.on_resigned(failed(), 1400);
  CHECK(election.next(1400) == Action::kNone);
  REQUIRE(election.next(1400 + Election::kRetryMs) == Action::kResign);
  election.on_resigned(failed(RemoteOutcome::kFenced), 1460);
  CHECK(election.phase() == Phase::kResigned);
}

TEST_CASE("a primary is fenced by a later epoch, not by an older text of its own") {
  Standby standby;
  standby.lead();
  CHECK(standby.election.on_epoch(text_of(4, "n2", false), 1100).ok());
  CHECK(standby.election.on_epoch(text_of(3, "n1"), 1100).ok());
  CHECK(standby.election.leads());
  CHECK(standby.election.on_epoch(text_of(5, "n3", false), 1100).ok());
  CHECK(standby.election.phase() == Phase::kFenced);

  Standby other;
  other.lead();
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
  constexpr int64_t kDueMs = 100 + 50 + Election::kPreferredStartMs;
  CHECK(election.due_ms() == kDueMs);
  REQUIRE(election.next(kDueMs) == Action::kProbe);
  // Frames that were not heard of yet are no sign of life: nobody leads.
  election.on_probed(done(), state_of(encode_epoch(free), 12), kDueMs);
  REQUIRE(election.next(kDueMs) == Action::kTake);
  election.on_taken(taken(state_of(text_of(5, "n2", false), 13)), kDueMs + 10);
  CHECK(election.acknowledges_from_ms() == INT64_MIN);
}

TEST_CASE("delays, lag, and nodes that never take") {
  Standby delayed(70);
  CHECK(delayed.election.due_ms() == kFirstProbeMs + 70);
  delayed.election.set_lag(Election::kLagMs + 1);
  CHECK(delayed.election.due_ms() == kFirstProbeMs + 70 + Election::kLagMs);
  Standby never(0, true);
  CHECK(never.election.due_ms() == INT64_MAX);
}

TEST_CASE("while the group is paused only the holder's own node takes its epoch") {
  Standby standby;
  Election& election = standby.election;
  const RemoteState state = state_of(text_of(3, "n1"), 10);
  election.set_paused(true);
  standby.look(state, kFirstProbeMs);
  // It looks again, and takes when looks show that the pause has ended.
  CHECK(election.due_ms() == 2 * kFirstProbeMs);
  election.set_paused(false);
  standby.look(state, 2 * kFirstProbeMs);
  REQUIRE(election.next(kFirstProbeMs + kTimeoutMs) == Action::kProbe);
  election.on_probed(done(), state, kFirstProbeMs + kTimeoutMs);
  CHECK(election.phase() == Phase::kTake);
  for (const char* holder : {"n2", ""}) {
    Standby other;
    other.election.set_paused(true);
    REQUIRE(other.election.on_epoch(text_of(4, holder), 10).ok());
    if (*holder != '\0') {
      other.look(state_of(text_of(4, holder), 10), 10);
      other.look(state_of(text_of(4, holder), 10), 10 + kFirstProbeMs);
    }
    REQUIRE(other.election.next(10 + kTimeoutMs) == Action::kProbe);
    other.election.on_probed(done(), state_of(text_of(4, holder), 10), 10 + kTimeoutMs);
    CHECK(other.election.phase() == Phase::kTake);
  }
}

TEST_CASE("while the log does not answer nobody takes, and then the count begins anew") {
  Standby standby;
  standby.election.on_log_lost();
  CHECK(standby.election.due_ms() == INT64_MAX);
  standby.election.on_log_found(5000);
  CHECK(standby.election.due_ms() == 5000);
  standby.look(state_of(text_of(3, "n1"), 20), 5000);
  CHECK(standby.election.due_ms() == 5000 + kFirstProbeMs);
  // A probe without an answer is the same.
  REQUIRE(standby.election.next(6000) == Action::kProbe);
  standby.election.on_probed(failed(), {}, 6300);
  CHECK(standby.election.due_ms() == 6300 + kFirstProbeMs);
  // The log is lost while the state is read: what was read does not decide.
  CHECK(standby.election.on_epoch(text_of(4, "n3"), 6400).ok());
  REQUIRE(standby.election.next(6400) == Action::kProbe);
  standby.election.on_log_lost();
  standby.election.on_probed(done(), state_of(text_of(4, "n3"), 20), 6500);
  CHECK(standby.election.phase() == Phase::kFollow);
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
