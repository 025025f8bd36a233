// Reader: takes RDB's numbers and strings from the front of a view.
//
// The layout is documented in several places: "Redis RDB File Format" (rdb.fnordig.de), the
// specification in redis-rdb-tools' wiki, and what redis-server 7.0.15 writes. Every function
// answers false where the bytes are cut short or make no sense, before it allocates anything for
// them; then the reader is of no further use.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/bytes.h"

namespace sluice::rdb {

class Reader {
 public:
  // Strings that are longer than `max_string_bytes` when unpacked are refused.
  Reader(Bytes bytes, uint64_t max_string_bytes)
      : rest_(bytes), max_string_bytes_(max_string_bytes) {}

  Bytes rest() const { return rest_; }

  bool byte(uint8_t& value);
  // Bytes that stay where they are.
  bool bytes(uint64_t count, Bytes& value);
  // Little-endian integers of 1 to 8 bytes.
  bool number(size_t width, uint64_t& value);
  // A length; a string in one of its special encodings is none.
  bool length(uint64_t& value);
  // The number of elements that follow, each of at least `least_bytes`.
  bool count(size_t least_bytes, uint64_t& value);
  // A string: plain, an integer as text, or compressed.
  bool string(std::string& value);
  // Eight bytes; and the older form, a text with its length.
  bool binary_double(double& value);
  bool text_double(double& value);

 private:
  bool length_or_encoding(uint64_t& value, bool& encoded);
  bool compressed_string(std::string& value);

  Bytes rest_;
  uint64_t max_string_bytes_;
};

// Unpacks LZF: `size` is what the result must have. False: damaged.
bool lzf_decompress(Bytes packed, size_t size, std::string& out);

}  // namespace sluice::rdb
