#include "storage/random_id.h"

#include <random>

#include "engine/base/hex.h"

namespace sluice {

std::string random_id() {
  std::random_device device;
  std::string id;
  for (int i = 0; i < 40; ++i) id += kHexDigits[device() % 16];
  return id;
}

}  // namespace sluice
