#include "engine/clients/client_pause.h"

#include <algorithm>

namespace sluice {

void ClientPause::begin(PauseMode wanted, int64_t now_ms, int64_t end_ms) {
  MutexLock lock(mutex_);
  const PauseMode present = mode(now_ms);
  mode_.store(std::max(present, wanted), std::memory_order_relaxed);
  if (present != PauseMode::kNone) end_ms = std::max(end_ms, end_ms_.load());
  end_ms_.store(end_ms, std::memory_order_release);
}

void ClientPause::end() {
  MutexLock lock(mutex_);
  end_ms_.store(0, std::memory_order_release);
}

void ClientPause::end_if_over(int64_t now_ms) {
  MutexLock lock(mutex_);
  if (mode(now_ms) == PauseMode::kNone) end_ms_.store(0, std::memory_order_release);
}

}  // namespace sluice
