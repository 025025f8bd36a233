// HyperLogLog: how many different elements a set has had, from 16,384 registers of six bits. The
// bytes of a value are Redis's: a string that GET, DUMP and SETRANGE show.
//
// A value is a header of 16 bytes and the registers. Header: "HYLL", the encoding, three bytes that
// are not used, and the last count (eight bytes, little-endian; the highest bit says that it holds
// no longer). Dense: register i is the six bits from bit 6 i on, the lowest bit of a byte first.
// Sparse: runs of registers, 00nnnnnn: n + 1 zeros, 01nnnnnn nnnnnnnn: the same with fourteen bits,
// 1vvvvvnn: n + 1 registers that are v + 1. A register holds the greatest rank of the elements that
// fall on it: one more than the number of zeros at the low end of the rest of the hash.
//
// Clients may write any bytes into a string, so a sparse value may be damaged: its runs are not
// 16,384 registers together. Pure functions; any thread.
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

// The register on which an element falls, and what that becomes at least.
struct Place {
  uint32_t index;
  uint8_t rank;
};
Place place_of(Bytes element);

// A value of no elements: sparse, and its count is known.
std::string make_empty();

// It has a header, and the length of its encoding. REQUIRES for all that follow: it does.
bool is_valid(Bytes value);
bool is_dense(Bytes value);

// REQUIRES: is_dense(value), index < kRegisters.
uint8_t dense_register(Bytes value, uint32_t index);

enum class Change : uint8_t { kNone, kChanged, kDamaged };
// Raises the register; the last count does not hold any more then. A sparse value that would be
// longer than `max_sparse_bytes` becomes a dense one.
Change raise_register(std::string& value, const Place& place, size_t max_sparse_bytes);
// False: it is damaged, and unchanged.
bool make_dense(std::string& value);
void forget_count(std::string& value);

// Raises the registers to those of `value`. False: it is damaged; some may have been raised.
bool merge(Bytes value, Registers& registers);

// The last count, if it holds.
std::optional<uint64_t> last_count(Bytes value);
// A new count; nothing: it is damaged.
std::optional<uint64_t> count(Bytes value);
uint64_t count(const Registers& registers);
std::array<char, kCountBytes> encode_count(uint64_t count);

// The runs of a sparse value as text: "Z:16379 v:2,1 z:4".
std::string describe_runs(Bytes value);

// Adds elements to values of both encodings and compares registers and counts; what is wrong, or
// nothing. Takes some milliseconds.
std::string self_test();

}  // namespace sluice::hyperloglog
