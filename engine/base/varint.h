// Packed integers and bytes, as records and event logs hold them: LEB128 varints, zigzag for signed
// ones, bytes with a varint length; and doubles.
//
// `put_*` writes to a place with enough room and returns the end, or appends to a buffer or a
// string. `take_*` takes from the front of a view and returns false if that is cut short or
// damaged. Pure functions of their arguments.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

#include "engine/base/bytes.h"

namespace sluice {

inline constexpr size_t kMaxVarintBytes = 10;

// --- To a place ---
// The place has room for kMaxVarintBytes, and for the bytes after a length. The functions may
// overwrite the room after the end that they return.

// Writes values of two bytes or more. It is not inlined, so that the usual single byte is written
// in place. All groups of seven bits move to their bytes at once: a loop of varying length is often
// mispredicted.
[[gnu::noinline]] inline char* put_long_varint(char* to, uint64_t value) {
  for (; value >> 56 != 0; value >>= 7) *to++ = static_cast<char>(value | 0x80);
  const size_t size = (static_cast<size_t>(std::bit_width(value)) + 6) / 7;
  uint64_t bytes = (value & 0x0fffffff) | (value & 0xfffffff0000000) << 4;
  bytes = (bytes & 0x00003fff00003fff) | (bytes & 0x0fffc0000fffc000) << 2;
  bytes = (bytes & 0x007f007f007f007f) | (bytes & 0x3f803f803f803f80) << 1;
  // Sets the continuation bit of every byte but the last.
  bytes |= 0x8080808080808080 & ((uint64_t{1} << 8 * (size - 1)) - 1);
  std::memcpy(to, &bytes, sizeof(bytes));
  return to + size;
}

inline char* put_varint(char* to, uint64_t value) {
  if (value >= 0x80) return put_long_varint(to, value);
  *to = static_cast<char>(value);
  return to + 1;
}

inline char* put_signed(char* to, int64_t value) {
  return put_varint(to, (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63));
}

inline char* put_bytes(char* to, Bytes bytes) {
  to = put_varint(to, bytes.size());
  if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
  return to + bytes.size();
}

// --- At the end of a buffer ---

inline void put_varint(ByteBuffer& to, uint64_t value) {
  char* const begin = to.grow(kMaxVarintBytes);
  to.advance(static_cast<size_t>(put_varint(begin, value) - begin));
}

inline void put_signed(ByteBuffer& to, int64_t value) {
  char* const begin = to.grow(kMaxVarintBytes);
  to.advance(static_cast<size_t>(put_signed(begin, value) - begin));
}

inline void put_bytes(ByteBuffer& to, Bytes bytes) {
  char* const begin = to.grow(kMaxVarintBytes + bytes.size());
  to.advance(static_cast<size_t>(put_bytes(begin, bytes) - begin));
}

// Eight bytes, little-endian.
inline void put_double(ByteBuffer& to, double value) {
  std::memcpy(to.grow(sizeof(value)), &value, sizeof(value));
  to.advance(sizeof(value));
}

// --- At the end of a string ---

inline void put_varint(std::string& to, uint64_t value) {
  char bytes[kMaxVarintBytes];
  to.append(bytes, static_cast<size_t>(put_varint(bytes, value) - bytes));
}

inline void put_signed(std::string& to, int64_t value) {
  char bytes[kMaxVarintBytes];
  to.append(bytes, static_cast<size_t>(put_signed(bytes, value) - bytes));
}

inline void put_bytes(std::string& to, Bytes bytes) {
  put_varint(to, bytes.size());
  to.append(bytes);
}

// --- From the front ---

inline bool take_varint(Bytes& from, uint64_t& value) {
  value = 0;
  for (size_t i = 0; i < from.size() && i < kMaxVarintBytes; ++i) {
    const auto byte = static_cast<uint8_t>(from[i]);
    value |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if ((byte & 0x80) == 0) {
      from.remove_prefix(i + 1);
      return true;
    }
  }
  return false;
}

inline bool take_signed(Bytes& from, int64_t& value) {
  uint64_t raw = 0;
  if (!take_varint(from, raw)) return false;
  value = static_cast<int64_t>((raw >> 1) ^ (~(raw & 1) + 1));
  return true;
}

inline bool take_double(Bytes& from, double& value) {
  if (from.size() < sizeof(value)) return false;
  std::memcpy(&value, from.data(), sizeof(value));
  from.remove_prefix(sizeof(value));
  return true;
}

inline bool take_bytes(Bytes& from, Bytes& bytes) {
  uint64_t size = 0;
  if (!take_varint(from, size) || size > from.size()) return false;
  bytes = from.substr(0, size);
  from.remove_prefix(size);
  return true;
}

}  // namespace sluice
