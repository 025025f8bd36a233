// Numbers of the format of RDB files that reading and writing share, as redis-server 7.0.15 writes
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace sluice::rdb {

// Types of values with their encodings.
enum ValueType : uint8_t {
  kString = 0,
  kList = 1,
  kSet = 2,
  kSortedText = 3,  // scores as text
  kHash = 4,
  kSorted = 5,
  kHashZipmap = 9,
  kListZiplist = 10,
  kSetIntset = 11,
  kSortedZiplist = 12,
  kHashZiplist = 13,
  kListQuicklist = 14,  // of ziplists
  kHashListpack = 16,
  kSortedListpack = 17,
  kListQuicklist2 = 18,  // of listpacks and plain elements
};

// Appends the lowest `width` bytes, the lowest one first.
inline void put_number(std::string& to, uint64_t value, size_t width) {
  for (size_t i = 0; i < width; ++i) to += static_cast<char>(value >> 8 * i);
}

}  // namespace sluice::rdb
