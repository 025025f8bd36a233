// ReplicatedCommit: sends commits to the replicated log, as the holder of its epoch.
//
// A commit is cut into frames of at most kMaxFramePayload. Up to `in_flight` frames are out at a
// time, so the log may hold later ones without an earlier one. Acknowledged is the contiguous
// prefix only, up to a frame that ends a commit, and not before `acknowledge_from`; then the commit
// is handed back, for the local log.
// A frame whose outcome is unknown is sent again with the same bytes, until it is committed or the
// node is fenced. Nothing else ends it: a commit that was sent may be in the log.
//
// When another process has taken the epoch, or has written a frame in its name, on_failed is called
// once, and nothing is sent or acknowledged any more.
//
// Threads: one thread calls wants, add and pump. The rest may be called by any thread. Callbacks
// run on a thread of the log or inside pump, in order, under this object's lock: they must not call
// it back.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/base/mutex.h"
#include "storage/commit_buffer.h"
#include "storage/group_keys.h"
#include "storage/log_frame.h"
#include "storage/log_rules.h"
#include "storage/remote_log.h"

namespace sluice {

struct ReplicatedOptions {
  std::string fence;  // the own epoch, ready
  LogPosition begin;  // where the log ends; `epoch` is the own one
  size_t in_flight = 4;
  size_t max_frame_bytes = kMaxFramePayload;  // tests use less
  LogRules rules;
  // Nothing is acknowledged before, though frames are sent and committed: an older primary may
  // still answer reads.
  std::chrono::steady_clock::time_point acknowledge_from = {};
  // What the lease of reads lives on (net/group/read_lease.h): a frame is committed, and its first
  // try was sent at `first_sent_ms` of `now_ms`, milliseconds of CLOCK_BOOTTIME. A frame that an
  // earlier try had written proves nothing, since nobody knows when. Called like a callback; both
  // or neither.
  std::function<int64_t()> now_ms = {};
  std::function<void(int64_t first_sent_ms)> on_proof = {};
};

struct ReplicatedCallbacks {
  std::function<void(Lsn)> on_durable;
  std::function<void()> on_change;  // pump or take_committed has something to do
  std::function<void(const Status&)> on_failed;
};

class ReplicatedCommit : public std::enable_shared_from_this<ReplicatedCommit> {
 public:
  using Clock = std::chrono::steady_clock;
  struct Committed {
    CommitBuffer buffer;
    LogPosition position;
  };

  ReplicatedCommit(RemoteLog& log, ReplicatedOptions options, ReplicatedCallbacks callbacks)
      : log_(log),
        options_(std::move(options)),
        callbacks_(std::move(callbacks)),
        seq_(options_.begin.seq),
        chain_(options_.begin.chain),
        log_bytes_(options_.begin.bytes),
        position_(options_.begin) {}

  // Whether a buffer with that many bytes should be added now. One client alone waits for nothing;
  // many share a frame.
  bool wants(size_t bytes, Clock::time_point now) const;
  // Takes over units that follow those added before. REQUIRES: seal() was called.
  void add(CommitBuffer units, Clock::time_point now);
  // Sends what may be sent.
  void pump(Clock::time_point now);
  // When pump has something to do without an answer; `bytes` as in wants.
  Clock::time_point next_pump(size_t bytes, Clock::time_point now) const;

  // The next commit that is in the log and was not taken yet.
  std::optional<Committed> take_committed();
  // Behind the last frame that is acknowledged.
  LogPosition position() const;
  // Whatever was added is acknowledged.
  bool idle() const;
  // Bytes added and not taken by take_committed.
  size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  // The largest piece in them.
  size_t largest() const { return largest_.load(std::memory_order_relaxed); }
  // On return no callback runs any more, and none will.
  void stop();

 private:
  // A commit of which not every frame is committed.
  struct Work {
    CommitBuffer buffer;
    CommitBuffer::Divided divided;
    size_t part = 0;    // of divided.parts: what the next frame begins with
    size_t offset = 0;  // in it
    size_t left = 0;    // bytes without a frame
  };
  struct Flight {
    std::shared_ptr<const std::string> frame;
    uint64_t seq = 0;
    Lsn last_lsn = 0;
    uint32_t chain = 0;
    uint64_t log_bytes = 0;  // LogPosition::bytes behind it
    int64_t first_sent_ms = 0;
    bool last_of_commit = false;
    bool done = false;
    std::optional<Clock::time_point> again;  // when to repeat; nothing: it is out
    Clock::duration delay{};                 // before the next repetition
  };

  Bytes next_payload(Work& work);
  Flight next_flight();
  void send(uint64_t seq, const std::shared_ptr<const std::string>& frame);
  void answered(uint64_t seq, const RemoteAnswer& answer);
  void committed(uint64_t seq, bool repeated) REQUIRES(mutex_);
  void end_flight(const Flight& flight) REQUIRES(mutex_);
  // Returns false if there was nothing to acknowledge.
  bool acknowledge(Clock::time_point now) REQUIRES(mutex_);
  void repeat_later(uint64_t seq) REQUIRES(mutex_);
  void fail(const Status& reason) REQUIRES(mutex_);
  Flight* find(uint64_t seq) REQUIRES(mutex_);
  void count_bytes() REQUIRES(mutex_);

  RemoteLog& log_;
  const ReplicatedOptions options_;
  const ReplicatedCallbacks callbacks_;
  std::atomic<size_t> bytes_{0};
  std::atomic<size_t> largest_{0};

  // Used by the thread that pumps: the last frame made, and when the last buffer was added.
  uint64_t seq_;
  uint32_t chain_;
  uint64_t log_bytes_;
  Clock::time_point added_{};
  std::string scratch_;

  mutable Mutex mutex_;
  std::deque<Work> works_ GUARDED_BY(mutex_);      // only the last one may have frames to make
  std::deque<Flight> flights_ GUARDED_BY(mutex_);  // without a gap; the first one is not done
  std::deque<Committed> unacknowledged_ GUARDED_BY(mutex_);  // in the log, without a hole before
  std::deque<Committed> committed_ GUARDED_BY(mutex_);
  LogPosition position_ GUARDED_BY(mutex_);
  bool came_back_ GUARDED_BY(mutex_) = false;  // a frame, since the last buffer was added
  bool stopped_ GUARDED_BY(mutex_) = false;
};

}  // namespace sluice
