// Constants of the RDB file format for reading and writing, as in redis-server 7.0.15.
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
  kModuleValue = 7,
  kHashZipmap = 9,
  kListZiplist = 10,
  kSetIntset = 11,
  kSortedZiplist = 12,
  kHashZiplist = 13,
  kListQuicklist = 14,  // of ziplists
  kStreamListpacks = 15,
  kHashListpack = 16,
  kSortedListpack = 17,
  kListQuicklist2 = 18,    // of listpacks and plain elements
  kStreamListpacks2 = 19,  // with counters of added and read entries
};

// Bytes in place of a type that introduce something other than a key with its value.
enum Opcode : uint8_t {
  kFunctionLibrary = 245,
  kFunctionBeforeRelease = 246,  // written by release candidates of Redis 7.0
  kModuleAux = 247,
  kIdleTime = 248,  // of the next key, as the next three
  kUseFrequency = 249,
  kExpiryMs = 252,
  kExpirySeconds = 253,
  kAuxiliary = 250,  // the writer of the file, and the time
  kTableSizes = 251,
  kSelectDatabase = 254,
  kEndOfFile = 255,
};

// Flags of an entry in a stream's listpack.
inline constexpr int64_t kStreamEntryDeleted = 1;
inline constexpr int64_t kStreamEntrySameFields = 2;

// Appends the lowest `width` bytes, little-endian.
inline void put_number(std::string& to, uint64_t value, size_t width) {
  for (size_t i = 0; i < width; ++i) to += static_cast<char>(value >> 8 * i);
}

}  // namespace sluice::rdb
