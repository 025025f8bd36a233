#include "net/server/server_shared.h"

#include <random>

#include "engine/base/hex.h"
#include "net/process/clocks.h"
#include "net/server/wall_clock.h"

namespace sluice {

namespace {

std::string random_run_id() {
  std::random_device device;
  std::string id;
  for (int i = 0; i < 40; ++i) id += kHexDigits[device() % 16];
  return id;
}

}  // namespace

ServerShared::ServerShared(Config& from)
    : config(from),
      run_id(random_run_id()),
      started_ms(wall_ms()),
      started_steady_ms(Clocks::steady_ms()) {
  state.started_ms = started_ms;
}

}  // namespace sluice
