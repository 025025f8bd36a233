// The on-disk format: all numbers, and the encoding of units, checkpoint pieces and checkpoint
// summaries. A number is never reused and never changes its meaning; a change gets a new version.
//
// All integers are little-endian, except keys in RocksDB, which are big-endian so that they sort by
// value. A checksum covers every other byte of its item: first the payload, then the rest of the
// header, so that the payload's part can be computed before the lsn is known (and outside the
// journal's lock).
//
//   unit     crc32c u32 | length u32 | lsn u64 | time_ms i64
//            | records u32 | version u8 | flags u8 | 0 u16
//            | records (length bytes)
//   piece    crc32c u32 | length u32 | checkpoint u64
//            | number u32 | records u32 | version u8 | 0 x 7
//            | records (length bytes)
//   summary  crc32c u32 | version u8 | 0 x 3
//            | checkpoint u64 | begin_lsn u64 | end_lsn u64
//            | started_ms i64 | finished_ms i64
//            | pieces u64 | records u64 | bytes u64
//   mark     lsn u64 | crc32c u32 | magic u32               (the file "high-water-mark")
//   frame    crc32c u32 | magic u32 | version u8 | flags u8 | 0 u16 | length u32
//            | epoch u64 | seq u64 | first_lsn u64 | last_lsn u64 | previous chain u32 | 0 u32
//            | part of a commit (length bytes), perhaps compressed     (in the replicated log only)
//
// Keys of the log:
//   commit            its first lsn u64
//   position          the first lsn u64 of its commit | 'p'  (nodes of a group; group_keys.h)
//   piece, summary    0xff | checkpoint u64 | number u32
//
// Pure functions; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/bytes.h"
#include "engine/base/crc32c.h"
#include "engine/base/status.h"
#include "engine/ports/journal.h"

namespace sluice {

// Version of the directory as a whole, in the file "FORMAT". A directory of an older version is
// upgraded when it is opened. Changes:
//   2  a queue's head record holds the number of kept events
//   3  an adoption records who adopted; a job records its AT as given where the clocks differ; a
//      checkpoint records the queue time
//   4  a job records which lease completed the job that it succeeds; the counters of events include
//      the floor of lease tokens
//   5  a record may say that a key was moved, instead of what the key holds
//   6  a record may say which jobs have yet to be notified of an end
//   7  a job may name jobs that it comes after, and such a record jobs that come after others; an
//      event may be about a job's progress, and a record may hold bytes of a job's log; a queue's
//      configuration may have rules for workers; a node of a group keeps its position in the
//      replicated log beside each commit; a unit says that it moves keys
inline constexpr uint32_t kFormatVersion = 7;
inline constexpr uint32_t kOldestFormatVersion = 1;
inline constexpr uint8_t kUnitVersion = 1;
inline constexpr uint8_t kPieceVersion = 1;
inline constexpr uint8_t kSummaryVersion = 1;
inline constexpr uint32_t kMarkMagic = 0x4b524d53;   // "SMRK"
inline constexpr uint32_t kFrameMagic = 0x4d524653;  // "SFRM"
inline constexpr uint8_t kFrameVersion = 1;

inline constexpr size_t kUnitHeaderBytes = 32;
inline constexpr size_t kPieceHeaderBytes = 32;
inline constexpr size_t kSummaryBytes = 72;
inline constexpr size_t kMarkBytes = 16;
inline constexpr size_t kFrameHeaderBytes = 56;

// RocksDB limits a value to 4 GiB. Longer units are divided (storage/group_commit.h), so no value
// of the log exceeds this plus a header, unless a single record is longer.
inline constexpr size_t kMaxUnitBytes = size_t{1} << 30;

// The units before this one were left out on purpose, because the log was off. Units after the gap
// are valid only with a checkpoint that begins at or after the gap.
inline constexpr uint8_t kUnitFollowsGap = 1;
// One of the records is a kMoveKey (Journal::append).
inline constexpr uint8_t kUnitMoves = 2;
inline constexpr uint8_t kKnownUnitFlags = kUnitFollowsGap | kUnitMoves;

inline constexpr uint8_t kFrameLastOfCommit = 1;
inline constexpr uint8_t kFrameZstd = 2;
inline constexpr uint8_t kKnownFrameFlags = kFrameLastOfCommit | kFrameZstd;

struct UnitHeader {
  uint32_t crc = 0;
  uint32_t length = 0;
  Lsn lsn = 0;
  int64_t time_ms = 0;
  uint32_t records = 0;
  uint8_t version = kUnitVersion;
  uint8_t flags = 0;
};

// What is wrong with bytes that should be a unit.
enum class UnitDamage : uint8_t { kNone, kCut, kChecksum, kVersion, kFlags };
const char* describe(UnitDamage damage);

// Stores the checksum in a header that is otherwise complete. `records_crc` is that of the records.
inline void seal_unit_header(char* header, uint32_t records_crc) {
  const uint32_t crc = crc32c_extend(records_crc, header + 4, kUnitHeaderBytes - 4);
  std::memcpy(header, &crc, 4);
}

// Writes the header of a unit. `records_crc` is the checksum of its records.
inline void encode_unit_header(char* to, uint32_t records_crc, uint32_t length, Lsn lsn,
                               int64_t time_ms, uint32_t records, uint8_t flags) {
  const uint64_t tail = records | uint64_t{kUnitVersion} << 32 | uint64_t{flags} << 40;
  std::memcpy(to + 4, &length, 4);
  std::memcpy(to + 8, &lsn, 8);
  std::memcpy(to + 16, &time_ms, 8);
  std::memcpy(to + 24, &tail, 8);
  seal_unit_header(to, records_crc);
}

// Iterates over the units of one commit: while (cursor.next()) use cursor.header() and
// cursor.records(); then check damage(). After damage the cursor does not advance, and offset() is
// the start of the damaged unit.
class UnitCursor {
 public:
  // The checksums of the first `sound` bytes are known to be right (see sound_unit_bytes).
  explicit UnitCursor(Bytes commit, size_t sound = 0) : commit_(commit), sound_(sound) {}

  bool next();
  const UnitHeader& header() const { return header_; }
  Bytes records() const { return records_; }
  uint64_t offset() const { return offset_; }  // of the unit that next() examined last
  UnitDamage damage() const { return damage_; }

 private:
  Bytes commit_;
  size_t sound_;
  uint64_t offset_ = 0;
  uint64_t end_ = 0;
  UnitHeader header_;
  Bytes records_;
  UnitDamage damage_ = UnitDamage::kNone;
};

// Length of the prefix of a commit that consists of whole units with correct checksums.
size_t sound_unit_bytes(Bytes commit);

using LogKey = std::array<char, 8>;
LogKey encode_log_key(Lsn first_lsn);
std::optional<Lsn> decode_log_key(Bytes key);

// Sorts behind the commit's key and before the next one's.
using PositionKey = std::array<char, 9>;
PositionKey encode_position_key(Lsn first_lsn);
bool is_position_key(Bytes key);

// Checkpoints sort after all commits, since no lsn begins with this byte. A summary's key sorts
// after every piece of its checkpoint.
inline constexpr char kCheckpointPrefix = '\xff';
inline constexpr uint32_t kSummaryNumber = UINT32_MAX;
using PieceKey = std::array<char, 13>;
PieceKey encode_piece_key(uint64_t checkpoint, uint32_t number);
struct PiecePlace {
  uint64_t checkpoint = 0;
  uint32_t number = 0;
};
std::optional<PiecePlace> decode_piece_key(Bytes key);

struct PieceHeader {
  uint64_t checkpoint = 0;
  uint32_t number = 0;
  uint32_t records = 0;
};
// `piece` holds kPieceHeaderBytes of room, then the records. Fills in the header.
void seal_piece(char* piece, size_t size, const PieceHeader& header);
// Size of the piece if its checksum is correct, else 0.
size_t sound_piece_bytes(Bytes piece);
struct OpenedPiece {
  PieceHeader header;
  Bytes records;
};
// Checks the piece. The checksum of the first `sound` bytes is known to be right (see
// sound_piece_bytes).
Result<OpenedPiece> open_piece(Bytes piece, size_t sound = 0);

struct CheckpointSummary {
  uint64_t checkpoint = 0;  // its number, which grows by one
  Lsn begin_lsn = 0;        // B: recovery continues with B + 1
  Lsn end_lsn = 0;          // E: the log must reach at least this lsn
  int64_t started_ms = 0;
  int64_t finished_ms = 0;
  uint64_t pieces = 0;
  uint64_t records = 0;
  uint64_t bytes = 0;  // of all pieces
};
std::string encode_summary(const CheckpointSummary& summary);
Result<CheckpointSummary> decode_summary(Bytes bytes);

std::array<char, kMarkBytes> encode_mark(Lsn lsn);
std::optional<Lsn> decode_mark(Bytes bytes);

}  // namespace sluice
