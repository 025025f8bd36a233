// Numbers in encoded bytes, little-endian as in memory. Any thread.
#pragma once

#include <bit>
#include <cstring>

namespace sluice {

static_assert(std::endian::native == std::endian::little, "encodings here copy native integers");

template <typename T>
T load(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <typename T>
void store(char* to, T value) {
  std::memcpy(to, &value, sizeof(T));
}

}  // namespace sluice
