// Election: decides when a node may take its group's epoch, and when it may acknowledge then. It
// makes no call and reads no clock: the caller reports what it hears from the replicated log,
// carries out the action that next() returns, and reports the answer.
//
//   follow     hears frames and beats of the epoch. Shortly before silence has lasted for the
//              failover timeout, and then again -> probe; also as an epoch begins, or the log is
//              found, so that later probes know what is newer
//   probe      reads the state: anything newer, or a late answer, starts the count
//              again, else -> take, of an epoch that somebody holds after the second one only: the
//              log may just have come back for this node, and not yet for the primary
//   take       LogTakeover runs (storage/log_takeover.h). Somebody else was first -> follow
//   lead       writes the log, sends beats
//   resign     the epoch becomes nobody's, so that somebody else takes it without waiting
//   failed     what is in the log does not go on where this node has stopped: it cannot lead
//   fenced     another node has the epoch; a node that led must end, since its memory may hold
//              changes that the log does not
//
// Times are milliseconds of one clock that counts suspension (CLOCK_BOOTTIME). The clocks of two
// nodes need not agree; their rates may differ by ten percent (read_lease.h). Used by one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/bytes.h"
#include "engine/base/status.h"
#include "storage/group_keys.h"
#include "storage/log_takeover.h"
#include "storage/remote_log.h"

namespace sluice {

struct ElectionOptions {
  std::string node;    // the name of this node in the group
  std::string run_id;  // of this process, random
  // Another node's lease of reads may be longer than by this: silence lasts for the longer one.
  int64_t failover_timeout_ms = 1000;
  // Added to the timeout, so that several standbys do not take at once.
  int64_t delay_ms = 0;
};

class Election {
 public:
  enum class Phase : uint8_t {
    kFollow,
    kProbe,
    kTake,
    kLead,
    kResign,
    kResigned,
    kFenced,
    kFailed
  };
  // What the caller is to do, once; the answer is reported by the member of that name.
  enum class Action : uint8_t {
    kNone,
    kProbe,   // RemoteLog::read_state: on_probed
    kTake,    // LogTakeover from fence() to mine(): on_taken
    kResign,  // RemoteLog::change_epoch(fence(), the text of mine()): on_resigned
  };

  // A preferred node may take a free epoch at once, others wait so long: longer than a busy machine
  // holds a process up. It costs time only if the preferred node has gone.
  static constexpr int64_t kPreferredStartMs = 1000;
  // Between the two probes of a silent primary, at most: in that time it can write again what it
  // could not while the log was out of reach.
  static constexpr int64_t kBetweenProbesMs = 300;
  // Between two tries of RESIGN.
  static constexpr int64_t kRetryMs = 50;
  // A standby that is further behind the beat lets others go first, by as much.
  static constexpr int64_t kLagMs = 1000;

  explicit Election(ElectionOptions options) : options_(std::move(options)) {}

  // --- What the caller hears ---

  // The state at the start, which the caller follows from. There must be an epoch.
  Status begin(const RemoteState& state, int64_t now_ms);
  // A value of the epoch. An error: it cannot be decoded.
  Status on_epoch(Bytes text, int64_t now_ms);
  void on_beat(const BeatValue& beat, int64_t now_ms);
  void on_frame(uint64_t epoch, uint64_t seq, int64_t now_ms);
  // The log does not answer, or nothing is heard of it. The count of silence restarts with
  // on_log_found, so that a primary that has suffered the same can be heard of first.
  void on_log_lost() { log_answers_ = knows_state_ = false; }
  void on_log_found(int64_t now_ms);
  // How far the applied state is behind the newest beat.
  void set_lag(int64_t lag_ms) { lag_ms_ = lag_ms; }
  // replica-priority 0.
  void set_never_takes(bool never) { never_takes_ = never; }
  // The group is paused (group_pause.h), as the probe that is reported next has found it: only the
  // holder's own node, started again, may take its epoch.
  void set_paused(bool paused) { paused_ = paused; }

  // --- What is to be done ---

  // The next action, or kNone: then call again after the next report, and at due_ms().
  Action next(int64_t now_ms);
  int64_t due_ms() const;

  void on_probed(const RemoteAnswer& answer, const RemoteState& state, int64_t now_ms);
  // The end of LogTakeover; if it failed, on_epoch tells who has the epoch.
  void on_taken(const TakeoverResult& result, int64_t now_ms);
  void on_resigned(const RemoteAnswer& answer, int64_t now_ms);
  // An append or a beat was refused: the epoch has this value.
  void on_fenced(Bytes epoch, int64_t now_ms);
  // Only while leading, not before acknowledges_from_ms(), since nobody waits after it; when
  // everything is durable and the lease of reads has ended. `preferred`: a node that may take at
  // once; empty: any.
  void resign(const std::string& preferred, int64_t now_ms);

  // --- State ---

  Phase phase() const { return phase_; }
  bool leads() const { return phase_ == Phase::kLead; }
  // replica-priority 0 keeps this node from taking what others might, for `silent_ms` by now. Such
  // a node sends no probes: `paused` is what it has heard.
  bool must_not_take(int64_t now_ms, int64_t silent_ms, bool paused) const {
    if (!never_takes_ || !log_answers_ || leads() || (paused && is_held())) return false;
    return now_ms - heard_ms_ >= std::max(silent_ms, epoch_.holder.empty() ? 0 : silence_ms());
  }
  // The newest epoch that was heard of; `epoch().epoch` 0: none yet.
  const EpochValue& epoch() const { return epoch_; }
  // The epoch that is to be changed, or that this node leads with; and what it is to become.
  const std::string& fence() const { return fence_; }
  const EpochValue& mine() const { return mine_; }
  // A new primary must not acknowledge anything before this moment: the last one may still answer
  // reads.
  int64_t acknowledges_from_ms() const { return acknowledges_from_ms_; }

 private:
  int64_t silence_ms() const;
  int64_t take_ms() const;
  bool must_look() const;
  // By another node.
  bool is_held() const { return !epoch_.holder.empty() && epoch_.holder != options_.node; }
  void heard(int64_t now_ms) {
    heard_ms_ = now_ms;
    silent_ms_.reset();
  }
  int64_t between_probes_ms() const;
  bool is_newer(const RemoteState& state) const;
  bool has_news(const RemoteState& state) const;
  void note(const RemoteState& state, int64_t now_ms);
  Status adopt(Bytes text, int64_t now_ms);
  void go(Phase phase);
  void begin_probe(int64_t now_ms);
  void take();

  const ElectionOptions options_;
  Phase phase_ = Phase::kFollow;
  bool asked_ = false;  // the phase's action is being carried out
  int64_t not_before_ms_ = INT64_MIN;

  // What was heard last. Counter and seq belong to this epoch, and grow within it.
  EpochValue epoch_;
  std::string epoch_text_;
  uint64_t beat_counter_ = 0;
  uint64_t last_seq_ = 0;
  bool knows_state_ = false;  // the state was read in this epoch, and followed since
  bool looks_ = false;        // the probe that is out only reads the state
  int64_t heard_ms_ = 0;
  std::optional<int64_t> silent_ms_;  // the first probe has found nothing newer, at this time
  bool log_answers_ = false;
  int64_t lag_ms_ = 0;
  bool never_takes_ = false;
  bool paused_ = false;

  // What this node makes of the epoch; epoch_ may be another's already.
  EpochValue mine_;
  std::string fence_;
  int64_t probed_ms_ = 0;  // when the probe was sent
  // What had been heard as of the decision to take.
  std::string decided_epoch_;
  uint64_t decided_number_ = 0;
  uint64_t decided_seq_ = 0;
  uint64_t decided_beat_ = 0;
  bool was_free_ = false;  // taken from nobody: no lease to wait for
  int64_t lease_ms_ = 0;   // at least as long as the last holder's lease of reads
  int64_t acknowledges_from_ms_ = 0;
};

}  // namespace sluice
