// LogTail: puts the frames of the replicated log in order, checks them, and yields whole commits.
// It is what LogReader and recovery are to the local log.
//
// Frames may come early, twice and late, and some that come were removed from the log since: those
// behind a hole, or of a commit that was never finished, when a later epoch was taken. Of the
// frames with one number, that of the greatest epoch counts.
//
// Used by one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/status.h"
#include "storage/group_keys.h"
#include "storage/log_frame.h"
#include "storage/remote_log.h"

namespace sluice {

struct TailCommit {
  std::string units;  // as the local log keeps them
  Lsn first_lsn = 0;
  LogPosition position;  // behind it
  bool moves = false;    // one of the units has kUnitMoves
};

// Whether the log continues where a node has stopped, at `at`: its last frame is still there, or
// the trim mark is just behind it. kStale: the log was trimmed past it, so a copy of another node
// helps (the frames behind a trim mark would look like those behind a hole). kInvalid: the log is
// not the one that the node has followed. `frames`: what read_frames(max(1, at.seq)) gives first;
// `trim`: the mark, or empty.
Status check_continues(const LogPosition& at, const RemoteFrames& frames, Bytes trim);

class LogTail {
 public:
  // Frames that may be held because one before them has not come. Further ones are dropped, and are
  // read again with the missing one.
  static constexpr size_t kMaxEarly = 64;

  // Continues at `position`.
  explicit LogTail(LogPosition position) : position_(std::move(position)) {}

  // Takes a frame, and appends to `commits` those that are whole now. An error: the frame is
  // damaged, or it does not follow the one before it. Nothing of it is kept then; the caller reads
  // from next_seq() again, and stops if that does not help.
  Status add(uint64_t seq, Bytes bytes, std::vector<TailCommit>& commits);

  // The first frame that is missing.
  uint64_t next_seq() const { return position_.seq + 1 + part_frames_; }
  // A later frame has come: the missing one is to be read, unless it comes soon.
  bool has_gap() const { return !early_.empty(); }
  // Behind the last whole commit.
  const LogPosition& position() const { return position_; }
  // Forgets the frames behind position(): nobody will complete them.
  void drop_unfinished();

 private:
  struct Held {
    Frame frame;
    uint32_t chain;  // after it, if the chain before it is right
    size_t bytes;    // as it lies in the log
  };

  Status take(const Held& held, std::vector<TailCommit>& commits);
  Status finish(const Frame& frame, std::vector<TailCommit>& commits);
  void drop_part();
  void keep_early(uint64_t seq, Held held);

  LogPosition position_;
  // The frames of a commit that is not whole yet.
  std::string part_;
  uint64_t part_frames_ = 0;
  uint64_t part_bytes_ = 0;  // of them in the log
  FrameHeader part_header_;  // of the last one
  uint32_t part_chain_ = 0;  // after it
  std::map<uint64_t, Held> early_;
};

}  // namespace sluice
