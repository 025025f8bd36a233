// LogTakeover: makes a process the holder of the replicated log's epoch.
//
//   TAKE   from here on the frames of older epochs do not change: no append of theirs succeeds
//   read   what is there, at a revision after TAKE, and apply it: a page each time it is pumped, so
//          that not more of the log is held than the process has room for
//   TIDY   remove what lies behind the last whole commit before the first hole: nobody has
//          acknowledged it, and the next frames get those numbers. If the beat or another node's
//          record says that somebody has, the log has lost frames, and nothing is removed
//   READY  from here on no late TIDY succeeds, so the process may append
//
// Each step is one request; one of unknown outcome is repeated until it is known. With `seen` empty
// there is no epoch yet, and the first step is INIT.
//
// Threads: pump may be called by any thread. The callbacks run on a thread of the log, or on the
// one that pumps, one at a time, and must not call back.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/mutex.h"
#include "storage/group_keys.h"
#include "storage/log_rules.h"
#include "storage/log_tail.h"
#include "storage/remote_log.h"

namespace sluice {

struct TakeoverResult {
  // Not ok: kLocked if another process has the epoch now, kCancelled if the log was closed,
  // kStale if the log does not go on where this process has stopped, kDamaged if what is in it
  // does not follow.
  Status status;
  std::string fence;     // the own epoch, ready
  LogPosition position;  // where to append; `epoch` is the own one
  RemoteState found;     // as the epoch was taken
  // TAKE was answered only by a later look: an older primary may have been alive until then.
  bool late = false;
};

struct TakeoverOptions {
  std::string seen;  // the epoch as it is
  EpochValue mine;   // `ready` is set as it goes
  LogTail tail;      // what this process has applied
  std::function<void(std::vector<TailCommit>)> on_commits;
  std::function<void(const TakeoverResult&)> on_end;  // once
  LogRules rules;
  // As far as another node has applied or acknowledged the log, and which one.
  Lsn known_lsn = 0;
  std::string known_by = {};
  std::function<void(const RemoteAnswer&)> on_unanswered = {};
};

class LogTakeover : public std::enable_shared_from_this<LogTakeover> {
 public:
  LogTakeover(RemoteLog& log, TakeoverOptions options);

  // Sends the request of the present step, unless it is out. Call it to begin, after on_commits,
  // and then now and again: that is when a request of unknown outcome is repeated. `has_room`:
  // false if what on_commits was given must be applied before more of it comes.
  void pump(bool has_room = true);

 private:
  enum class Step : uint8_t { kTake, kLook, kRead, kTidy, kReady, kEnd };

  void send(Step step);
  void answered(Step step, const RemoteAnswer& answer, const std::string& wanted);
  void looked(const RemoteAnswer& answer, const RemoteState& state);
  void read(const RemoteAnswer& answer, const RemoteFrames& frames);
  // Sends the request of `step`.
  void advance(Step step) EXCLUDES(mutex_);
  // The present step becomes the one behind TAKE; the next pump sends its request.
  void look_again() EXCLUDES(mutex_);
  // The next pump sends the request of the present step.
  void pause() EXCLUDES(mutex_);
  bool retry(const RemoteAnswer& answer);
  Status check_acknowledged() const;
  void end(Status status);
  uint64_t next_seq() const;

  RemoteLog& log_;
  TakeoverOptions options_;
  std::string taken_;  // the epoch's text after TAKE
  std::string ready_;  // and after READY
  TakeoverResult result_;
  int64_t revision_ = 0;
  uint64_t read_from_ = 0;
  bool begun_ = false;  // the first frames were read

  Mutex mutex_;
  Step step_ GUARDED_BY(mutex_) = Step::kTake;
  bool out_ GUARDED_BY(mutex_) = false;
};

}  // namespace sluice
