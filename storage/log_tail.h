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

namespace sluice {

struct TailCommit {
  std::string units;  // as the local log keeps them
  Lsn first_lsn = 0;
  LogPosition position;  // behind it
};

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
  };

  Status take(const Frame& frame, uint32_t chain, std::vector<TailCommit>& commits);
  Status finish(const Frame& frame, std::vector<TailCommit>& commits);
  void drop_part();
  void keep_early(uint64_t seq, Held held);

  LogPosition position_;
  // The frames of a commit that is not whole yet.
  std::string part_;
  uint64_t part_frames_ = 0;
  FrameHeader part_header_;  // of the last one
  uint32_t part_chain_ = 0;  // after it
  std::map<uint64_t, Held> early_;
};

}  // namespace sluice
