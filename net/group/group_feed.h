// GroupFeed: brings the frames of the replicated log to a node in order, as whole commits. It reads
// what is there, then takes what is told, and reads again what has not come.
//
// Used by the group's thread. Times are milliseconds of CLOCK_BOOTTIME.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/status.h"
#include "net/group/doubt.h"
#include "net/group/group_inbox.h"
#include "storage/log_tail.h"
#include "storage/remote_log.h"

namespace sluice {

class GroupFeed {
 public:
  // With so many bytes of commits on their way to the engine nothing more is taken. What is told
  // meanwhile is read later.
  static constexpr size_t kMaxPendingBytes = size_t{64} << 20;
  // A frame that others show to be missing is read after this time.
  static constexpr int64_t kGapMs = 300;
  static constexpr int64_t kRetryMs = 50;

  struct Callbacks {
    std::function<void(std::vector<TailCommit>)> on_commits;
    // The frames do not follow each other, or the log does not continue where this node has
    // stopped, and reading again has not helped. kStale: it was trimmed past that place.
    std::function<void(const Status&)> on_broken;
  };

  GroupFeed(RemoteLog& log, GroupInbox& inbox, size_t max_pending_bytes, Callbacks callbacks)
      : log_(log),
        inbox_(inbox),
        max_pending_bytes_(max_pending_bytes),
        callbacks_(std::move(callbacks)),
        tail_(LogPosition()) {}

  // Starts, or starts again, behind `position`: reads, and checks that the log continues there.
  // `trim`: the mark, or empty.
  void start(LogPosition position, std::string trim);
  // The mark has moved: frames up to `seq` are gone. Those that have not come never will.
  void on_trim(const std::string& trim, uint64_t seq);
  // Nothing is taken or read any more, until start().
  void stop();

  void on_frame(uint64_t seq, Bytes frame, int64_t now_ms);
  // The log holds the frames up to `seq`.
  void on_target(uint64_t seq, int64_t now_ms);
  // Reads what may be missing.
  void read_again(int64_t now_ms);
  // So many bytes of commits have been given to the engine beside on_commits; have been applied.
  void note_taken(size_t bytes) { pending_bytes_ += bytes; }
  void note_applied(size_t bytes) { pending_bytes_ -= bytes; }
  bool is_full() const { return pending_bytes_ > max_pending_bytes_; }

  void step(int64_t now_ms);
  // When step() has something to do.
  int64_t due_ms() const;

  // Behind the last whole commit.
  const LogPosition& position() const { return tail_.position(); }
  const LogTail& tail() const { return tail_; }
  // The frame that the log lacks though it has a later one, in words; empty: none.
  std::string hole() const;
  // Everything that was there at start() has come.
  bool has_read() const { return has_read_; }

 private:
  void read(int64_t now_ms);
  void on_page(const RemoteAnswer& answer, const RemoteFrames& frames, int64_t now_ms);
  void look_at_trim(const RemoteFrames& frames, int64_t now_ms);
  void doubt(const Status& why, int64_t now_ms);
  void take_page(const RemoteFrames& frames, int64_t now_ms);
  bool take(uint64_t seq, Bytes frame);

  RemoteLog& log_;
  GroupInbox& inbox_;
  const size_t max_pending_bytes_;
  const Callbacks callbacks_;
  LogTail tail_;
  std::string trim_;
  uint64_t run_ = 0;  // answers to requests of an earlier start() are dropped
  bool on_ = false;
  bool has_read_ = false;
  bool checked_ = false;  // the log continues where this node has stopped
  bool at_hole_ = false;  // as the last page has shown
  bool reading_ = false;
  int64_t read_at_ms_ = INT64_MAX;
  size_t pending_bytes_ = 0;
  Doubt doubt_;    // that the log continues where this node has stopped
  Status broken_;  // what the last look has found; a second one of the same ends it
};

}  // namespace sluice
