#include "net/server/server_shared.h"

#include "net/process/clocks.h"
#include "net/process/wall_clock.h"
#include "storage/random_id.h"

namespace sluice {

ServerShared::ServerShared(Config& from)
    : config(from),
      run_id(random_id()),
      started_ms(wall_ms()),
      started_steady_ms(Clocks::steady_ms()) {
  state.started_ms = started_ms;
}

}  // namespace sluice
