#include "engine/clients/client_pause.h"

#include <algorithm>

namespace sluice {

void ClientPause::begin(PauseMode wanted, int64_t now_ms, int64_t end_ms) {
  MutexLock lock(mutex_);
  const bool runs = now_ms < asked_.end_ms;
  asked_.mode = runs ? std::max(asked_.mode, wanted) : wanted;
  asked_.end_ms = runs ? std::max(asked_.end_ms, end_ms) : end_ms;
  publish();
}

void ClientPause::end() {
  MutexLock lock(mutex_);
  asked_ = {};
  publish();
}

void ClientPause::end_if_over(int64_t now_ms) {
  MutexLock lock(mutex_);
  if (now_ms >= asked_.end_ms) asked_ = {};
  if (now_ms >= held_.end_ms) held_ = {};
  publish();
}

void ClientPause::hold(int64_t end_ms) {
  MutexLock lock(mutex_);
  held_ = {PauseMode::kData, std::max(held_.end_ms, end_ms)};
  publish();
}

void ClientPause::release() {
  MutexLock lock(mutex_);
  held_ = {};
  publish();
}

void ClientPause::publish() {
  mode_.store(std::max(asked_.mode, held_.mode), std::memory_order_relaxed);
  end_ms_.store(std::max(asked_.end_ms, held_.end_ms), std::memory_order_release);
}

}  // namespace sluice
