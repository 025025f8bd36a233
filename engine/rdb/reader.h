// Reader: takes RDB's numbers and strings from the front of a view, or of a stream.
//
// The layout is documented in several places: "Redis RDB File Format" (rdb.fnordig.de), the
// specification in redis-rdb-tools' wiki, and what redis-server 7.0.15 writes. Every function
// answers false where the bytes are cut short or make no sense, before it allocates anything for
// them; then the reader is of no further use, but position() says where that was.
//
// One thread. A view that it gives out lives until the next call.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/bytes.h"

namespace sluice::rdb {

// Where the bytes of a stream come from.
class Source {
 public:
  virtual ~Source() = default;
  // Reads up to `size` bytes; how many it were, 0 at the end and after an error.
  virtual size_t read(char* to, size_t size) = 0;
};

class Reader {
 public:
  // Strings that are longer than `max_string_bytes` when unpacked are refused.
  Reader(Bytes bytes, uint64_t max_string_bytes)
      : rest_(bytes), total_(bytes.size()), max_string_bytes_(max_string_bytes) {}
  // The stream has `total_bytes`, and outlives the reader. No more of it is in memory at a time
  // than the longest string, or 256 KiB.
  Reader(Source& source, uint64_t total_bytes, uint64_t max_string_bytes)
      : source_(&source),
        unread_(total_bytes),
        total_(total_bytes),
        max_string_bytes_(max_string_bytes) {}
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // Of a view: what has not been taken yet.
  Bytes rest() const { return rest_; }
  // Bytes that have been taken, and that are left.
  uint64_t position() const { return total_ - left(); }
  uint64_t left() const { return rest_.size() + unread_; }
  // Of a stream: the CRC-64 of all that has been taken.
  uint64_t checksum() const;

  bool byte(uint8_t& value);
  bool bytes(uint64_t count, Bytes& value);
  // Little-endian integers of 1 to 8 bytes.
  bool number(size_t width, uint64_t& value);
  // A length; a string in one of its special encodings is none.
  bool length(uint64_t& value);
  // The number of elements that follow, each of at least `least_bytes`.
  bool count(size_t least_bytes, uint64_t& value);
  // A string: plain, an integer as text, or compressed.
  bool string(Bytes& value);
  // Eight bytes; and the older form, a text with its length.
  bool binary_double(double& value);
  bool text_double(double& value);

 private:
  bool length_or_encoding(uint64_t& value, bool& encoded);
  bool compressed_string(Bytes& value);
  // Makes rest_ at least so long.
  bool need(uint64_t count) { return rest_.size() >= count || fill(count); }
  bool fill(uint64_t count);

  Bytes rest_;  // the end of buffer_, where there is a stream
  Source* source_ = nullptr;
  uint64_t unread_ = 0;  // of the stream
  uint64_t total_;
  uint64_t max_string_bytes_;
  std::string buffer_;
  uint64_t crc_ = 0;      // of what was taken before buffer_
  std::string unpacked_;  // the last string that did not stand as it is in the input
};

// Unpacks LZF: `size` is what the result must have. False: damaged.
bool lzf_decompress(Bytes packed, size_t size, std::string& out);

}  // namespace sluice::rdb
