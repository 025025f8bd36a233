#include "engine/rdb/crc64.h"

#include <array>

namespace sluice::rdb {

namespace {

// 0xad93d23594c935a9 with its bits in reverse order.
constexpr uint64_t kReflectedPolynomial = 0x95ac9329ac4bc9b5;

constexpr std::array<uint64_t, 256> make_table() {
  std::array<uint64_t, 256> table{};
  for (uint64_t byte = 0; byte < table.size(); ++byte) {
    uint64_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc & 1) != 0 ? crc >> 1 ^ kReflectedPolynomial : crc >> 1;
    }
    table[byte] = crc;
  }
  return table;
}

constexpr std::array<uint64_t, 256> kTable = make_table();

}  // namespace

uint64_t crc64(Bytes bytes, uint64_t before) {
  uint64_t crc = before;
  for (const char c : bytes) crc = kTable[(crc ^ static_cast<uint8_t>(c)) & 0xff] ^ crc >> 8;
  return crc;
}

}  // namespace sluice::rdb
