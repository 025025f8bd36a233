#include "net/group/election.h"

#include <algorithm>
#include <utility>

#include "engine/base/check.h"

namespace sluice {

// --- What is heard ---

Status Election::adopt(Bytes text, int64_t now_ms) {
  if (!log_answers_) on_log_found(now_ms);
  if (text == epoch_text_) return {};
  Result<EpochValue> value = decode_epoch(text);
  if (!value.ok()) return value.status();
  // What is followed may come after what was read.
  const auto order = [](const EpochValue& epoch) { return std::pair(epoch.epoch, epoch.ready); };
  if (order(*value) < order(epoch_)) return {};
  // Also as it becomes ready: its TIDY has removed frames.
  if (order(*value) > order(epoch_)) beat_counter_ = last_seq_ = 0;
  knows_state_ = false;
  epoch_ = std::move(*value);
  epoch_text_ = text;
  heard(now_ms);
  return {};
}

Status Election::begin(const RemoteState& state, int64_t now_ms) {
  const Status status = adopt(state.epoch, now_ms);
  if (!status.ok()) return status;
  note(state, now_ms);
  return {};
}

// What was read in an older epoch says nothing: its frames may have been removed.
void Election::note(const RemoteState& state, int64_t now_ms) {
  if (state.epoch != epoch_text_) return;
  knows_state_ = true;
  last_seq_ = std::max(last_seq_, state.last_seq);
  if (const auto beat = decode_beat(state.beat); beat.ok()) on_beat(*beat, now_ms);
}

Status Election::on_epoch(Bytes text, int64_t now_ms) {
  const Status status = adopt(text, now_ms);
  // Before it leads, the end of the takeover tells what has become of it.
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

// Also what was heard while the probe was on its way. When nobody leads there is nothing to hear.
bool Election::has_news(const RemoteState& state) const {
  if (epoch_text_ != decided_epoch_) return true;
  if (epoch_.holder.empty()) return false;
  return last_seq_ != decided_seq_ || beat_counter_ != decided_beat_ || is_newer(state);
}

// --- What is to be done ---

// Without it, frames of before the epoch would seem new to its first probe.
bool Election::must_look() const {
  return !knows_state_ && !never_takes_ && log_answers_ && !epoch_.holder.empty();
}

int64_t Election::silence_ms() const {
  return std::max(options_.failover_timeout_ms, epoch_.failover_timeout_ms);
}

int64_t Election::between_probes_ms() const { return std::min(kBetweenProbesMs, silence_ms() / 3); }

// When the next probe is due that may lead to TAKE.
int64_t Election::take_ms() const {
  if (never_takes_ || !log_answers_ || epoch_.epoch == 0) return INT64_MAX;
  const int64_t delay_ms = options_.delay_ms + (lag_ms_ > kLagMs ? kLagMs : 0);
  if (!epoch_.holder.empty()) {
    const int64_t take_ms = heard_ms_ + silence_ms() + delay_ms;
    if (!silent_ms_.has_value()) return take_ms - between_probes_ms();
    return std::max(take_ms, *silent_ms_ + between_probes_ms());
  }
  if (epoch_.preferred == options_.node) return heard_ms_;
  return heard_ms_ + delay_ms + (epoch_.preferred.empty() ? 0 : kPreferredStartMs);
}

int64_t Election::due_ms() const {
  if (asked_) return INT64_MAX;
  if (phase_ == Phase::kFollow) return must_look() ? heard_ms_ : take_ms();
  return phase_ == Phase::kTake || phase_ == Phase::kResign ? not_before_ms_ : INT64_MAX;
}

Election::Action Election::next(int64_t now_ms) {
  const int64_t due = due_ms();
  if (due == INT64_MAX || now_ms < due) return Action::kNone;
  if (phase_ == Phase::kFollow) begin_probe(now_ms);
  asked_ = true;
  if (phase_ == Phase::kProbe) return Action::kProbe;
  return phase_ == Phase::kTake ? Action::kTake : Action::kResign;
}

void Election::go(Phase phase) {
  phase_ = phase;
  asked_ = false;
  not_before_ms_ = INT64_MIN;
}

void Election::begin_probe(int64_t now_ms) {
  go(Phase::kProbe);
  probed_ms_ = now_ms;
  looks_ = must_look();
  decided_epoch_ = epoch_text_;
  decided_number_ = epoch_.epoch;
  decided_seq_ = last_seq_;
  decided_beat_ = beat_counter_;
}

void Election::on_probed(const RemoteAnswer& answer, const RemoteState& state, int64_t now_ms) {
  CHECK(phase_ == Phase::kProbe);
  const bool known = answer.outcome == RemoteOutcome::kDone;
  if (known) static_cast<void>(adopt(state.epoch, now_ms));
  // After a late answer the log was out of reach, perhaps for the primary, too.
  const bool prompt = now_ms - probed_ms_ <= options_.failover_timeout_ms / 2;
  if (known && prompt && !looks_ && !has_news(state) && !(paused_ && is_held())) {
    if (epoch_.holder.empty() || silent_ms_.has_value()) return take();
    silent_ms_ = now_ms;
    return go(Phase::kFollow);
  }
  if (known) note(state, now_ms);
  heard(now_ms);
  go(Phase::kFollow);
}

void Election::take() {
  was_free_ = epoch_.holder.empty();
  lease_ms_ = silence_ms();
  fence_ = epoch_text_;
  mine_ = epoch_;
  ++mine_.epoch;
  mine_.holder = options_.node;
  mine_.failover_timeout_ms = options_.failover_timeout_ms;
  mine_.run_id = options_.run_id;
  mine_.ready = false;
  mine_.preferred.clear();
  go(Phase::kTake);
}

void Election::on_taken(const TakeoverResult& result, int64_t now_ms) {
  CHECK(phase_ == Phase::kTake);
  if (!result.status.ok()) {
    const StatusCode code = result.status.code();
    heard(now_ms);
    return go(code == StatusCode::kLocked || code == StatusCode::kCancelled ? Phase::kFollow
                                                                            : Phase::kFailed);
  }
  // The last primary has been heard of since the decision: its lease may not be over.
  const bool waits = !was_free_ && (result.late || is_newer(result.found));
  acknowledges_from_ms_ = waits ? now_ms + lease_ms_ : INT64_MIN;
  fence_ = result.fence;
  mine_.ready = true;
  static_cast<void>(adopt(fence_, now_ms));
  go(epoch_text_ == fence_ ? Phase::kLead : Phase::kFenced);
}

void Election::on_fenced(Bytes epoch, int64_t now_ms) {
  static_cast<void>(adopt(epoch, now_ms));
  if (phase_ == Phase::kLead) go(Phase::kFenced);
}

void Election::resign(const std::string& preferred, int64_t now_ms) {
  CHECK(phase_ == Phase::kLead && now_ms >= acknowledges_from_ms_);
  ++mine_.epoch;
  mine_.holder.clear();
  mine_.failover_timeout_ms = 0;
  mine_.run_id.clear();
  mine_.ready = false;
  mine_.preferred = preferred;
  go(Phase::kResign);
}

void Election::on_resigned(const RemoteAnswer& answer, int64_t now_ms) {
  CHECK(phase_ == Phase::kResign);
  const bool unknown =
      answer.outcome != RemoteOutcome::kDone && answer.outcome != RemoteOutcome::kFenced;
  // Fenced: an earlier try has succeeded, or another node has taken the epoch.
  if (!unknown) return go(Phase::kResigned);
  asked_ = false;
  not_before_ms_ = now_ms + kRetryMs;
}

}  // namespace sluice
