#include "net/group/election.h"

#include <algorithm>
#include <utility>

#include "engine/base/check.h"

namespace sluice {

// --- What is heard ---

Status Election::adopt(Bytes text, int64_t now_ms) {
  log_answers_ = true;
  if (text == epoch_text_) return {};
  Result<EpochValue> value = decode_epoch(text);
  if (!value.ok()) return value.status();
  // What is followed may come after what was read.
  const auto order = [](const EpochValue& epoch) { return std::pair(epoch.epoch, epoch.ready); };
  if (order(*value) < order(epoch_)) return {};
  if (value->epoch > epoch_.epoch) beat_counter_ = last_seq_ = 0;
  epoch_ = std::move(*value);
  epoch_text_ = text;
  heard(now_ms);
  return {};
}

Status Election::begin(const RemoteState& state, int64_t now_ms) {
  const Status status = adopt(state.epoch, now_ms);
  if (!status.ok()) return status;
  last_seq_ = state.last_seq;
  if (const auto beat = decode_beat(state.beat); beat.ok()) on_beat(*beat, now_ms);
  return {};
}

Status Election::on_epoch(Bytes text, int64_t now_ms) {
  const Status status = adopt(text, now_ms);
  // Before it leads, the answer to the change that is under way tells what has become of it.
  if (phase_ == Phase::kLead && epoch_text_ != fence_) go(Phase::kFenced);
  return status;
}

void Election::on_beat(const BeatValue& beat, int64_t now_ms) {
  if (beat.epoch != epoch_.epoch || beat.counter <= beat_counter_) return;
  beat_counter_ = beat.counter;
  last_seq_ = std::max(last_seq_, beat.seq);
  heard(now_ms);
}

void Election::on_frame(uint64_t epoch, uint64_t seq, int64_t now_ms) {
  if (epoch != epoch_.epoch || seq <= last_seq_) return;
  last_seq_ = seq;
  heard(now_ms);
}

void Election::on_log_found(int64_t now_ms) {
  log_answers_ = true;
  heard(now_ms);
}

bool Election::is_newer(const RemoteState& state) const {
  if (state.last_seq > decided_seq_) return true;
  const Result<BeatValue> beat = decode_beat(state.beat);
  return beat.ok() && beat->epoch == decided_number_ && beat->counter > decided_beat_;
}

// --- What is to be done ---

int64_t Election::take_ms() const {
  if (!log_answers_ || epoch_.epoch == 0) return INT64_MAX;
  if (is_mine(epoch_)) return heard_ms_;  // a TAKE that seemed lost has succeeded
  if (options_.never_takes) return INT64_MAX;
  const int64_t delay_ms = options_.delay_ms + (lag_ms_ > kLagMs ? kLagMs : 0);
  if (!epoch_.holder.empty()) return heard_ms_ + options_.failover_timeout_ms + delay_ms;
  if (epoch_.preferred == options_.node) return heard_ms_;
  return heard_ms_ + delay_ms + (epoch_.preferred.empty() ? 0 : kPreferredStartMs);
}

int64_t Election::due_ms() const {
  if (asked_ || phase_ == Phase::kLead || phase_ >= Phase::kResigned) return INT64_MAX;
  return phase_ == Phase::kFollow ? std::max(take_ms(), not_before_ms_) : not_before_ms_;
}

Election::Action Election::next(int64_t now_ms) {
  if (now_ms < due_ms() || due_ms() == INT64_MAX) return Action::kNone;
  if (phase_ == Phase::kFollow) begin_probe();
  asked_ = true;
  switch (phase_) {
    case Phase::kProbe:
    case Phase::kRead:
      return Action::kReadState;
    case Phase::kTake:
    case Phase::kReady:
    case Phase::kResign:
      return Action::kChangeEpoch;
    case Phase::kCatchUp:
      return Action::kCatchUp;
    case Phase::kTidy:
      return Action::kTidy;
    default:
      return Action::kNone;
  }
}

void Election::go(Phase phase) {
  phase_ = phase;
  asked_ = false;
  not_before_ms_ = INT64_MIN;
}

void Election::repeat(int64_t now_ms) {
  asked_ = false;
  not_before_ms_ = now_ms + kRetryMs;
}

void Election::begin_probe() {
  go(Phase::kProbe);
  revision_ = 0;
  decided_epoch_ = epoch_text_;
  decided_number_ = epoch_.epoch;
  decided_seq_ = last_seq_;
  decided_beat_ = beat_counter_;
}

void Election::want_epoch(Phase phase, const EpochValue& next) {
  go(phase);
  mine_ = next;
  wanted_ = encode_epoch(next);
}

void Election::take() {
  was_free_ = epoch_.holder.empty();
  fence_ = epoch_text_;
  EpochValue next = epoch_;
  ++next.epoch;
  next.holder = options_.node;
  next.run_id = options_.run_id;
  next.ready = false;
  next.preferred.clear();
  want_epoch(Phase::kTake, next);
}

void Election::lose(Bytes epoch, int64_t now_ms) {
  static_cast<void>(adopt(epoch, now_ms));
  go(Phase::kFollow);
}

void Election::on_state(const RemoteAnswer& answer, const RemoteState& state, int64_t now_ms) {
  CHECK(phase_ == Phase::kProbe || phase_ == Phase::kRead);
  if (answer.outcome == RemoteOutcome::kDone) {
    return phase_ == Phase::kProbe ? on_probed(state, now_ms) : on_read(state, now_ms);
  }
  if (phase_ == Phase::kProbe) {
    go(Phase::kFollow);
    heard(now_ms);
    return;
  }
  if (answer.outcome == RemoteOutcome::kCompacted) revision_ = 0;
  repeat(now_ms);
}

void Election::on_probed(const RemoteState& state, int64_t now_ms) {
  static_cast<void>(adopt(state.epoch, now_ms));
  if (is_mine(epoch_)) {
    mine_ = epoch_;
    fence_ = epoch_text_;
    return take_is_done(0, true);
  }
  const bool newer = epoch_text_ != decided_epoch_ || is_newer(state) ||
                     last_seq_ != decided_seq_ || beat_counter_ != decided_beat_;
  if (!newer) return take();
  last_seq_ = std::max(last_seq_, state.last_seq);
  if (const auto beat = decode_beat(state.beat); beat.ok()) on_beat(*beat, now_ms);
  heard(now_ms);
  go(Phase::kFollow);
}

// `late`: it was done at an unknown time before, so what was decided on may be old.
void Election::take_is_done(int64_t revision, bool late) {
  took_late_ = late;
  revision_ = revision;
  go(Phase::kRead);
}

void Election::on_read(const RemoteState& state, int64_t now_ms) {
  if (state.epoch != fence_) return lose(state.epoch, now_ms);
  // The last primary has been heard of since the decision: its lease may not be over.
  const bool waits = !was_free_ && (took_late_ || is_newer(state));
  acknowledges_from_ms_ = waits ? now_ms + options_.failover_timeout_ms : INT64_MIN;
  last_seq_ = state.last_seq;
  go(Phase::kCatchUp);
}

void Election::on_caught_up(uint64_t next_seq) {
  CHECK(phase_ == Phase::kCatchUp);
  next_seq_ = next_seq;
  go(Phase::kTidy);
}

void Election::on_tidied(const RemoteAnswer& answer, int64_t now_ms) {
  CHECK(phase_ == Phase::kTidy);
  if (answer.outcome == RemoteOutcome::kFenced) return lose(answer.epoch, now_ms);
  if (answer.outcome != RemoteOutcome::kDone) return repeat(now_ms);
  EpochValue ready = mine_;
  ready.ready = true;
  want_epoch(Phase::kReady, ready);
}

void Election::on_epoch_changed(const RemoteAnswer& answer, int64_t now_ms) {
  CHECK(phase_ == Phase::kTake || phase_ == Phase::kReady || phase_ == Phase::kResign);
  // A repeated change finds its own value.
  const bool late = answer.outcome == RemoteOutcome::kFenced && answer.epoch == wanted_;
  if (answer.outcome == RemoteOutcome::kDone || late) {
    static_cast<void>(adopt(wanted_, now_ms));
    fence_ = wanted_;
    if (phase_ == Phase::kTake) return take_is_done(late ? 0 : answer.revision, late);
    return go(phase_ == Phase::kReady ? Phase::kLead : Phase::kResigned);
  }
  if (answer.outcome == RemoteOutcome::kFenced) {
    const bool resigns = phase_ == Phase::kResign;
    lose(answer.epoch, now_ms);
    if (resigns) go(Phase::kResigned);  // another node has taken it from this one
    return;
  }
  // The primary may have been heard of since; then TAKE is not tried again.
  if (phase_ == Phase::kTake) go(Phase::kFollow);
  repeat(now_ms);
}

void Election::on_fenced(Bytes epoch, int64_t now_ms) {
  static_cast<void>(adopt(epoch, now_ms));
  if (phase_ == Phase::kLead) go(Phase::kFenced);
}

void Election::resign(const std::string& preferred) {
  CHECK(phase_ == Phase::kLead);
  EpochValue free = mine_;
  ++free.epoch;
  free.holder.clear();
  free.run_id.clear();
  free.ready = false;
  free.preferred = preferred;
  want_epoch(Phase::kResign, free);
}

}  // namespace sluice
