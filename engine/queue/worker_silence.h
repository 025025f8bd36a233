// How long a worker without a lease is known after its last word.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/queue/queue_config.h"

namespace sluice {

// `worker_ttl_ms`, but so long that a worker that waits, which counts as heard each time, makes no
// timer due without a pause.
inline int64_t worker_known_ms(const QueueValues& values) {
  constexpr int64_t kLeastMs = 1000;
  return std::max(values.worker_ttl_ms, kLeastMs);
}

}  // namespace sluice
