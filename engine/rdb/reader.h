// Reader: takes RDB's numbers and strings from the front of a view or of a stream.
//
// The layout is documented in several places: "Redis RDB File Format" (rdb.fnordig.de), the
// specification in redis-rdb-tools' wiki, and by what redis-server 7.0.15 writes. Every function
// returns false if the bytes are cut short or invalid, before it allocates anything for them. The
// reader must not be used after that, except that position() tells the place.
//
// One thread. Views that it returns are valid until the next call.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/bytes.h"

namespace sluice::rdb {

// The source of the bytes of a stream.
class Source {
 public:
  virtual ~Source() = default;
  // Reads up to `size` bytes and returns their number, 0 at the end and after an error.
  virtual size_t read(char* to, size_t size) = 0;
};

class Reader {
 public:
  // Refuses strings that are longer than `max_string_bytes` when uncompressed.
  Reader(Bytes bytes, uint64_t max_string_bytes)
      : rest_(bytes), total_(bytes.size()), max_string_bytes_(max_string_bytes) {}
  // The stream has `total_bytes` and must outlive the reader. Memory holds no more of it than the
  // longest string, or 256 KiB.
  Reader(Source& source, uint64_t total_bytes, uint64_t max_string_bytes)
      : source_(&source),
        unread_(total_bytes),
        total_(total_bytes),
        max_string_bytes_(max_string_bytes) {}
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // For a view: the bytes that have not been taken.
  Bytes rest() const { return rest_; }
  // The number of bytes that have been taken, and that are left.
  uint64_t position() const { return total_ - left(); }
  uint64_t left() const { return rest_.size() + unread_; }
  // For a stream: the CRC-64 of the bytes that have been taken.
  uint64_t checksum() const;

  bool byte(uint8_t& value);
  bool bytes(uint64_t count, Bytes& value);
  // A little-endian integer of 1 to 8 bytes.
  bool number(size_t width, uint64_t& value);
  // A length. Fails for a string in one of its special encodings.
  bool length(uint64_t& value);
  // The number of elements that follow, each of at least `least_bytes`.
  bool count(size_t least_bytes, uint64_t& value);
  // A string: plain, an integer as text, or compressed.
  bool string(Bytes& value);
  // A double in eight bytes, and in the older form, a text with its length.
  bool binary_double(double& value);
  bool text_double(double& value);

 private:
  bool length_or_encoding(uint64_t& value, bool& encoded);
  bool compressed_string(Bytes& value);
  // Extends rest_ to at least this length.
  bool need(uint64_t count) { return rest_.size() >= count || fill(count); }
  bool fill(uint64_t count);

  Bytes rest_;  // the end of buffer_, for a stream
  Source* source_ = nullptr;
  uint64_t unread_ = 0;  // of the stream
  uint64_t total_;
  uint64_t max_string_bytes_;
  std::string buffer_;
  uint64_t crc_ = 0;      // of the bytes that were taken before buffer_
  std::string unpacked_;  // the last string that was encoded in the input
};

// Decompresses LZF; `size` is the exact size of the result. Returns false for damage.
bool lzf_decompress(Bytes packed, size_t size, std::string& out);

}  // namespace sluice::rdb
