// A copy of a data directory as a stream of bytes: its newest checkpoint, and the commits from
// there to the last one that was in the log when the copy began, or that comes before a gap
// (kUnitFollowsGap). From it another machine makes a directory that recovery accepts
// (copy_writer.h).
//
//   stream   items, each behind a header (kCopyItemBytes): crc32c of the rest of the header u32,
//            crc32c of the body u32, length of the body u64, kind u8, number u56 from 0
//   head     magic u32, version u32, format version u32, length of the position u32, of the mark
//            u32, 0 u32, last lsn u64, estimated bytes u64, the checkpoint's summary, the position,
//            the mark
//   piece    a sealed piece of the checkpoint; all of them, in order
//   commit   as the log keeps it; in order, from the one that contains the unit behind the
//            checkpoint's begin, or is the last before it
//   end      empty; without it the stream was cut
//
// Integers are little-endian. A number never changes its meaning; a change gets a new version.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/base/bytes.h"
#include "engine/base/status.h"
#include "engine/ports/journal.h"
#include "storage/format.h"
#include "storage/log.h"

namespace sluice {

inline constexpr size_t kCopyItemBytes = 24;
inline constexpr uint32_t kCopyMagic = 0x59504353;  // "SCPY"
inline constexpr uint32_t kCopyVersion = 1;

enum class CopyItem : uint8_t { kHead = 1, kPiece = 2, kCommit = 3, kEnd = 4 };

struct CopyHead {
  CheckpointSummary summary;
  Lsn last_lsn = 0;      // of the last commit, at least where the checkpoint begins
  uint64_t bytes = 0;    // about as long as the stream
  std::string position;  // beside the last commit, in the replicated log; empty: none
  std::string mark;      // the line of `group-base` (group_mark.h); empty: no such file
};

// Whether these bytes, at least kCopyItemBytes + 4 of them, begin a stream.
bool begins_copy(Bytes bytes);

// Reads a log as such a stream. It keeps the files that it reads until it is destroyed, even if the
// log removes them meanwhile, and hinders no writer. Used by one thread at a time; the log must
// outlive it.
class CopyReader {
 public:
  // `mark`: CopyHead::mark. Errors: kInvalid if there is no checkpoint yet; as of the log.
  static Result<std::unique_ptr<CopyReader>> open(Log& log, std::string mark);

  // The next item: its header, then its body. They are valid until the next call. False: the end,
  // or an error.
  bool next(Bytes& header, Bytes& body);
  const Status& status() const { return status_; }
  const CopyHead& head() const { return head_; }

 private:
  enum class At : uint8_t { kHead, kPieces, kCommits, kEnded };
  CopyReader() = default;
  bool next_piece(Bytes& header, Bytes& body);
  bool next_commit(Bytes& header, Bytes& body);
  bool give(CopyItem kind, Bytes& header, Bytes body);

  CopyHead head_;
  std::unique_ptr<PieceReader> pieces_;
  std::unique_ptr<LogReader> commits_;
  At at_ = At::kHead;
  Lsn reached_ = 0;
  uint64_t number_ = 0;
  std::string header_;
  std::string encoded_head_;
  Status status_;
};

// What a stream holds, in its order. An error of any call ends the copy.
class CopySink {
 public:
  virtual ~CopySink() = default;
  virtual Status begin(const CopyHead& head) = 0;
  virtual Status add_piece(uint32_t number, Bytes piece) = 0;
  virtual Status add_commit(Lsn first_lsn, Bytes commit) = 0;
  // Everything has come, and is whole.
  virtual Status end() = 0;
};

// Checks a stream as it arrives and hands it on: every byte is covered by a checksum, nothing is
// missing, cut, repeated or out of order. An error names the place. Used by one thread.
class CopyChecker {
 public:
  // `sink` may be null, to check only.
  explicit CopyChecker(CopySink* sink) : sink_(sink) {}

  // The next bytes, any number of them. After an error nothing may follow.
  Status take(Bytes bytes);
  // The connection or file has ended: an error (kDamaged) unless the copy has.
  Status finish() const;
  bool has_ended() const { return ended_; }
  uint64_t bytes() const { return bytes_; }
  const CopyHead& head() const { return head_; }

 private:
  Status take_header();
  Status take_item(Bytes body);
  Status take_head(Bytes body);
  Status take_piece(Bytes body);
  Status take_commit(Bytes body);
  Status take_end();
  Status damaged(const std::string& what) const;

  CopySink* const sink_;
  std::string buffer_;  // of the present item
  uint64_t wanted_ = kCopyItemBytes;
  CopyItem kind_ = CopyItem::kHead;
  uint32_t body_crc_ = 0;
  uint64_t number_ = 0;
  CopyHead head_;
  uint64_t pieces_ = 0;
  uint64_t records_ = 0;
  bool has_commit_ = false;
  Lsn reached_ = 0;  // the last unit that has come
  bool ended_ = false;
  uint64_t bytes_ = 0;
};

}  // namespace sluice
