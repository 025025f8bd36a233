#include "engine/clients/client_pause.h"

#include <algorithm>
#include <optional>

namespace sluice {

void ClientPause::begin(PauseMode wanted, int64_t now_ms, int64_t end_ms) {
  MutexLock lock(mutex_);
  const int64_t old_ms = asked_end_ms();
  const bool all = wanted == PauseMode::kAll || runs(kAll, now_ms);
  if (now_ms < old_ms) end_ms = std::max(end_ms, old_ms);
  // In this order: mode() finds one of them.
  set(all ? kAll : kWrites, end_ms);
  set(all ? kWrites : kAll, 0);
}

void ClientPause::end() {
  MutexLock lock(mutex_);
  set(kWrites, 0);
  set(kAll, 0);
}

void ClientPause::end_if_over(int64_t now_ms) {
  MutexLock lock(mutex_);
  for (const Part part : {kWrites, kAll, kHandOver, kJournal}) {
    if (!runs(part, now_ms)) set(part, 0);
  }
}

void ClientPause::hold(Hold why, int64_t end_ms) {
  MutexLock lock(mutex_);
  set(part_of(why), end_ms);
}

void ClientPause::release(Hold why) {
  MutexLock lock(mutex_);
  set(part_of(why), 0);
}

PauseMode ClientPause::mode(int64_t now_ms) const {
  if (now_ms >= end_ms()) return PauseMode::kNone;
  const bool writes = runs(kWrites, now_ms);
  if (runs(kAll, now_ms)) return PauseMode::kAll;
  if (runs(kHandOver, now_ms) || runs(kJournal, now_ms)) return PauseMode::kData;
  return writes ? PauseMode::kWrites : PauseMode::kNone;
}

int64_t ClientPause::asked_end_ms() const {
  return std::max(ends_ms_[kWrites].load(std::memory_order_relaxed),
                  ends_ms_[kAll].load(std::memory_order_relaxed));
}

int64_t ClientPause::next_end_ms(int64_t now_ms) const {
  std::optional<int64_t> next_ms;
  for (const auto& end : ends_ms_) {
    const int64_t end_ms = end.load(std::memory_order_acquire);
    if (end_ms > now_ms) next_ms = std::min(next_ms.value_or(INT64_MAX), end_ms);
  }
  return next_ms.value_or(now_ms);
}

void ClientPause::set(Part part, int64_t end_ms) {
  ends_ms_[part].store(end_ms, std::memory_order_release);
  int64_t latest_ms = 0;
  for (const auto& end : ends_ms_) {
    latest_ms = std::max(latest_ms, end.load(std::memory_order_relaxed));
  }
  end_ms_.store(latest_ms, std::memory_order_release);
}

}  // namespace sluice
