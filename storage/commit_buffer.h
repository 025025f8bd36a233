// Units that are to become one commit: encoded one behind the other as the log keeps them.
//
// Nearly always they are one run of bytes and one value of the log. The records of a large unit are
// not copied: they stay in a buffer of their own, a *piece*. Where a value would exceed the limit a
// further one begins, at a *cut*. Used by one thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/ports/journal.h"
#include "storage/log.h"
#include "storage/record_split.h"

namespace sluice {

class CommitBuffer {
 public:
  struct Stamp {
    Lsn lsn = 0;
    int64_t time_ms = 0;
    uint8_t flags = 0;
  };
  // The values of the log, and what their parts lie in.
  struct Divided {
    std::vector<Bytes> parts;
    std::vector<Commit> commits;
  };

  // `records_crc`: of the records; not used with `owned`, the buffer that holds them and is taken
  // over.
  void append(RecordRun records, uint32_t records_crc, const Stamp& stamp, ByteBuffer* owned,
              size_t max_unit_bytes);
  void reserve(size_t bytes) { bytes_.grow(bytes); }
  void clear();
  // Frees memory of a burst, after clear().
  void shrink(size_t keep) { bytes_.shrink(keep); }

  bool empty() const { return bytes_.empty(); }
  Lsn first_lsn() const { return first_lsn_; }
  Lsn last_lsn() const { return last_lsn_; }
  uint64_t units() const { return units_; }
  uint64_t records() const { return records_; }
  size_t size() const { return size_; }        // with pieces
  size_t largest() const { return largest_; }  // of the pieces, with its header

  // Computes the checksums of the pieces. Call it before one of the following.
  void seal();
  // The only value, if there are neither pieces nor cuts.
  bool is_plain() const { return cuts_.empty() && pieces_.empty(); }
  Bytes plain() const { return bytes_.view(); }
  Divided divide() const;

 private:
  struct Cut {
    size_t offset;  // in bytes_
    Lsn first_lsn;
    size_t size;  // everything before it, including pieces
  };
  // The records of a large unit, which follow the first `offset` bytes.
  struct Piece {
    size_t offset;
    ByteBuffer records;
  };

  ByteBuffer bytes_;
  std::vector<Cut> cuts_;
  std::vector<Piece> pieces_;
  Lsn first_lsn_ = 0;
  Lsn last_lsn_ = 0;
  uint64_t units_ = 0;
  uint64_t records_ = 0;
  size_t size_ = 0;
  size_t largest_ = 0;
};

}  // namespace sluice
