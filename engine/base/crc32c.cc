#include "engine/base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace sluice {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // reflected

using SliceTables = std::array<std::array<uint32_t, 256>, 8>;

// kSlices[k][v] is the contribution of byte v when k more bytes follow it.
constexpr SliceTables make_slices() {
  SliceTables tables{};
  for (uint32_t value = 0; value < 256; ++value) {
    uint32_t crc = value;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    tables[0][value] = crc;
  }
  for (uint32_t value = 0; value < 256; ++value) {
    for (size_t k = 1; k < 8; ++k) {
      const uint32_t before = tables[k - 1][value];
      tables[k][value] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}
constexpr SliceTables kSlices = make_slices();

// The functions below work on the raw register, which is not inverted at either end.
uint32_t raw_portable(uint32_t crc, const char* at, size_t size) {
  while (size >= 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    word ^= crc;
    crc = kSlices[7][word & 0xff] ^ kSlices[6][(word >> 8) & 0xff] ^
          kSlices[5][(word >> 16) & 0xff] ^ kSlices[4][(word >> 24) & 0xff] ^
          kSlices[3][(word >> 32) & 0xff] ^ kSlices[2][(word >> 40) & 0xff] ^
          kSlices[1][(word >> 48) & 0xff] ^ kSlices[0][word >> 56];
    at += 8;
    size -= 8;
  }
  while (size-- != 0) crc = (crc >> 8) ^ kSlices[0][(crc ^ static_cast<uint8_t>(*at++)) & 0xff];
  return crc;
}

#if defined(__x86_64__)

// The instruction has a latency of three cycles and a throughput of one, so a long input is read as
// three streams side by side. Joining them needs "the register after n more zero bytes", which is
// linear in the register: four tables, one for each of its bytes.
struct ZeroShift {
  explicit ZeroShift(size_t zeros) {
    std::array<uint32_t, 32> basis{};
    static constexpr std::array<char, 64> kZeros{};
    for (size_t bit = 0; bit < 32; ++bit) {
      uint32_t crc = uint32_t{1} << bit;
      for (size_t left = zeros; left != 0;) {
        const size_t step = left < kZeros.size() ? left : kZeros.size();
        crc = raw_portable(crc, kZeros.data(), step);
        left -= step;
      }
      basis[bit] = crc;
    }
    for (size_t byte = 0; byte < 4; ++byte) {
      for (size_t value = 0; value < 256; ++value) {
        uint32_t sum = 0;
        for (size_t bit = 0; bit < 8; ++bit) {
          if ((value >> bit & 1) != 0) sum ^= basis[byte * 8 + bit];
        }
        tables[byte][value] = sum;
      }
    }
  }

  uint32_t operator()(uint32_t crc) const {
    return tables[0][crc & 0xff] ^ tables[1][(crc >> 8) & 0xff] ^ tables[2][(crc >> 16) & 0xff] ^
           tables[3][crc >> 24];
  }

  std::array<std::array<uint32_t, 256>, 4> tables;
};

constexpr size_t kShortStream = 128;
constexpr size_t kLongStream = 2048;

inline uint64_t load_word(const char* at) {
  uint64_t word;
  std::memcpy(&word, at, 8);
  return word;
}

template <size_t kStream>
__attribute__((target("sse4.2"))) uint32_t raw_three_streams(uint32_t crc, const char*& at,
                                                             size_t& size) {
  static const ZeroShift shift(kStream);
  while (size >= 3 * kStream) {
    uint64_t a = crc;
    uint64_t b = 0;
    uint64_t c = 0;
    for (size_t i = 0; i < kStream; i += 8) {
      a = _mm_crc32_u64(a, load_word(at + i));
      b = _mm_crc32_u64(b, load_word(at + kStream + i));
      c = _mm_crc32_u64(c, load_word(at + 2 * kStream + i));
    }
    crc = shift(shift(static_cast<uint32_t>(a)) ^ static_cast<uint32_t>(b)) ^
          static_cast<uint32_t>(c);
    at += 3 * kStream;
    size -= 3 * kStream;
  }
  return crc;
}

__attribute__((target("sse4.2"))) uint32_t raw_sse42(uint32_t crc, const char* at, size_t size) {
  if (size >= 3 * kLongStream) crc = raw_three_streams<kLongStream>(crc, at, size);
  if (size >= 3 * kShortStream) crc = raw_three_streams<kShortStream>(crc, at, size);
  uint64_t wide = crc;
  while (size >= 8) {
    wide = _mm_crc32_u64(wide, load_word(at));
    at += 8;
    size -= 8;
  }
  crc = static_cast<uint32_t>(wide);
  while (size-- != 0) crc = _mm_crc32_u8(crc, static_cast<uint8_t>(*at++));
  return crc;
}

const bool kHasSse42 = __builtin_cpu_supports("sse4.2") != 0;

#endif

}  // namespace

uint32_t crc32c_extend_portable(uint32_t crc, const void* data, size_t size) {
  return ~raw_portable(~crc, static_cast<const char*>(data), size);
}

uint32_t crc32c_extend(uint32_t crc, const void* data, size_t size) {
#if defined(__x86_64__)
  if (kHasSse42) return ~raw_sse42(~crc, static_cast<const char*>(data), size);
#endif
  return crc32c_extend_portable(crc, data, size);
}

}  // namespace sluice
