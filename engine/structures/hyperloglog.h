// HyperLogLog: an estimate of the number of distinct elements, from 16,384 registers of six bits.
// The bytes of a value are those of Redis, because GET, DUMP and SETRANGE show them.
//
// A value is a header of 16 bytes and the registers. Header: "HYLL", the encoding, three unused
// bytes, and the cached count (eight bytes, little-endian; the highest bit says that it is out of
// date). Dense: register i is the six bits from bit 6 i on, the lowest bit of a byte first. Sparse:
// runs of registers: 00nnnnnn is n + 1 zeros, 01nnnnnn nnnnnnnn the same with fourteen bits,
// 1vvvvvnn n + 1 registers of value v + 1. A register holds the greatest rank of its elements: one
// more than the number of low zero bits in the rest of the hash.
//
// Clients may write any bytes into a string, so a sparse value may be damaged: its runs do not
// cover 16,384 registers. Pure functions; thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/bytes.h"

namespace sluice::hyperloglog {

inline constexpr uint32_t kRegisters = 16384;
inline constexpr size_t kHeaderBytes = 16;
inline constexpr size_t kCountOffset = 8;
inline constexpr size_t kCountBytes = 8;
inline constexpr size_t kDenseBytes = kHeaderBytes + kRegisters * 6 / 8;

using Registers = std::array<uint8_t, kRegisters>;

// The register of an element, and the least value that the element gives it.
struct Place {
  uint32_t index;
  uint8_t rank;
};
Place place_of(Bytes element);

// A sparse value without elements, whose cached count is valid.
std::string make_empty();

// Whether the value has a header and the length of its encoding. REQUIRES for all functions below:
// it has.
bool is_valid(Bytes value);
bool is_dense(Bytes value);

// REQUIRES: is_dense(value), index < kRegisters.
uint8_t dense_register(Bytes value, uint32_t index);

enum class Change : uint8_t { kNone, kChanged, kDamaged };
// Raises the register and invalidates the cached count. A sparse value that would become longer
// than `max_sparse_bytes` becomes dense.
Change raise_register(std::string& value, const Place& place, size_t max_sparse_bytes);
// Returns false and changes nothing if the value is damaged.
bool make_dense(std::string& value);
void forget_count(std::string& value);

// Raises the registers to those of `value`. Returns false if it is damaged; some registers may have
// been raised.
bool merge(Bytes value, Registers& registers);

// The cached count, if it is valid.
std::optional<uint64_t> last_count(Bytes value);
// Computes the count. Returns nothing if the value is damaged.
std::optional<uint64_t> count(Bytes value);
uint64_t count(const Registers& registers);
std::array<char, kCountBytes> encode_count(uint64_t count);

// The runs of a sparse value as text: "Z:16379 v:2,1 z:4".
std::string describe_runs(Bytes value);

// Adds elements to values of both encodings and compares registers and counts. Returns a
// description of the first error, or an empty text. Takes some milliseconds.
std::string self_test();

}  // namespace sluice::hyperloglog
