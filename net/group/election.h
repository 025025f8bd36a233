// Election: decides when a node may take its group's epoch, and what it does then, step by step,
// until it leads. It makes no call and reads no clock: the caller reports what it hears from the
// replicated log, carries out the action that next() returns, and reports the answer.
//
//   follow     hears frames and beats of the epoch. Silence for the failover timeout -> probe
//   probe      reads the state: anything newer starts the count again, else -> take
//   take       TAKE. Somebody else was first -> follow
//   read       reads the state at the revision of the own TAKE: where the log ends
//   catch up   applies the frames up to there
//   tidy       TIDY: deletes what lies behind a hole, which nobody can have acknowledged
//   ready      READY. From now on no late TIDY can do harm
//   lead       writes the log, sends beats
//   resign     RESIGN: the epoch is nobody's, somebody else takes it without waiting
//   fenced     another node has the epoch; a node that led must end, since its memory may hold
//              changes that the log does not
//
// A failed compare of the epoch is the only proof that a change has not happened. A change without
// an answer is repeated with the same bytes, or found again by reading the state.
//
// Times are milliseconds of one clock that counts suspension (CLOCK_BOOTTIME). The clocks of two
// nodes need not agree; their rates may differ by ten percent (read_lease.h). Used by one thread.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/bytes.h"
#include "engine/base/status.h"
#include "storage/group_keys.h"
#include "storage/remote_log.h"

namespace sluice {

struct ElectionOptions {
  std::string node;    // the name of this node in the group
  std::string run_id;  // of this process, random
  int64_t failover_timeout_ms = 1000;
  // Added to the timeout, so that several standbys do not take at once.
  int64_t delay_ms = 0;
  bool never_takes = false;  // replica-priority 0
};

class Election {
 public:
  enum class Phase : uint8_t {
    kFollow,
    kProbe,
    kTake,
    kRead,
    kCatchUp,
    kTidy,
    kReady,
    kLead,
    kResign,
    kResigned,
    kFenced,
  };
  // What the caller is to do, once; the answer is reported by the member of that name.
  enum class Action : uint8_t {
    kNone,
    kReadState,    // RemoteLog::read_state(revision()): on_state
    kChangeEpoch,  // RemoteLog::change_epoch(fence(), wanted()): on_epoch_changed
    kCatchUp,      // read and apply all frames up to last_seq(): on_caught_up
    kTidy,         // RemoteLog::tidy(fence(), next_seq()): on_tidied
    kLead,         // promote the engine and write the log with fence()
  };

  // A preferred node may take a free epoch at once, others wait so long.
  static constexpr int64_t kPreferredStartMs = 300;
  // Between two tries of the same change.
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
  void on_log_lost() { log_answers_ = false; }
  void on_log_found(int64_t now_ms);
  // How far the applied state is behind the newest beat.
  void set_lag(int64_t lag_ms) { lag_ms_ = lag_ms; }

  // --- What is to be done ---

  // The next action, or kNone: then call again after the next report, and at due_ms().
  Action next(int64_t now_ms);
  int64_t due_ms() const;

  void on_state(const RemoteAnswer& answer, const RemoteState& state, int64_t now_ms);
  void on_epoch_changed(const RemoteAnswer& answer, int64_t now_ms);
  // The contiguous prefix of whole commits ends before `next_seq`.
  void on_caught_up(uint64_t next_seq);
  void on_tidied(const RemoteAnswer& answer, int64_t now_ms);
  // An append or a beat was refused: the epoch has this value.
  void on_fenced(Bytes epoch, int64_t now_ms);
  // Only while leading, when everything is durable and the lease of reads has ended. `preferred`:
  // a node that may take at once; empty: any.
  void resign(const std::string& preferred);

  // --- State ---

  Phase phase() const { return phase_; }
  bool leads() const { return phase_ == Phase::kLead; }
  // The newest epoch that was heard of; `epoch().epoch` 0: none yet.
  const EpochValue& epoch() const { return epoch_; }
  const std::string& fence() const { return fence_; }
  const std::string& wanted() const { return wanted_; }
  int64_t revision() const { return revision_; }
  uint64_t last_seq() const { return last_seq_; }
  uint64_t next_seq() const { return next_seq_; }
  // A new primary must not acknowledge anything before this moment: the last one may still answer
  // reads.
  int64_t acknowledges_from_ms() const { return acknowledges_from_ms_; }

 private:
  bool is_mine(const EpochValue& value) const {
    return value.holder == options_.node && value.run_id == options_.run_id;
  }
  int64_t take_ms() const;
  void begin_probe();
  void heard(int64_t now_ms) { heard_ms_ = now_ms; }
  bool is_newer(const RemoteState& state) const;
  Status adopt(Bytes text, int64_t now_ms);
  void go(Phase phase);
  void repeat(int64_t now_ms);
  void take();
  void want_epoch(Phase phase, const EpochValue& next);
  void lose(Bytes epoch, int64_t now_ms);
  void on_probed(const RemoteState& state, int64_t now_ms);
  void take_is_done(int64_t revision, bool late);
  void on_read(const RemoteState& state, int64_t now_ms);

  const ElectionOptions options_;
  Phase phase_ = Phase::kFollow;
  bool asked_ = false;         // the phase's action is being carried out
  int64_t not_before_ms_ = 0;  // of its next try

  // What was heard last. Counter and seq belong to this epoch, and grow within it.
  EpochValue epoch_;
  std::string epoch_text_;
  uint64_t beat_counter_ = 0;
  uint64_t last_seq_ = 0;
  int64_t heard_ms_ = 0;
  bool log_answers_ = false;
  int64_t lag_ms_ = 0;

  // What this node has made of the epoch; epoch_ may be another's already.
  EpochValue mine_;
  std::string fence_;
  std::string wanted_;
  int64_t revision_ = 0;
  uint64_t next_seq_ = 0;
  // What had been heard as of the decision to take.
  std::string decided_epoch_;
  uint64_t decided_number_ = 0;
  uint64_t decided_seq_ = 0;
  uint64_t decided_beat_ = 0;
  bool was_free_ = false;   // taken from nobody: no lease to wait for
  bool took_late_ = false;  // the TAKE was found to be done, nobody knows since when
  int64_t acknowledges_from_ms_ = 0;
};

}  // namespace sluice
