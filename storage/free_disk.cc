#include "storage/free_disk.h"

#include <algorithm>

namespace sluice {

namespace {

// Free space is checked whenever this fraction of min_bytes() has been written.
constexpr uint64_t kProbesPerReserve = 32;
constexpr uint64_t kLeastPerProbe = uint64_t{1} << 20;

}  // namespace

void FreeDisk::probe(uint64_t written, Clock::time_point now) {
  probed_at_ = written;
  const Result<uint64_t> free = log_->free_disk_bytes();
  if (!free.ok()) return;  // unknown free space is no reason to refuse writes
  bytes_.store(free.value(), std::memory_order_relaxed);
  const bool below = free.value() < min_bytes();
  if (below_min_.exchange(below, std::memory_order_relaxed) != below && on_below_) on_below_(below);
  tell(below, now);
}

// The end is told at once, so that the last line of the log is true a minute later at most.
void FreeDisk::tell(bool below, Clock::time_point now) {
  if (below == told_below_ || (below && now < tell_again_)) return;
  told_below_ = below;
  if (below) tell_again_ = now + kTellAgain;
  if (tell_) tell_(*this);
}

bool FreeDisk::is_due(uint64_t written) const {
  return written - probed_at_ >= std::max(min_bytes() / kProbesPerReserve, kLeastPerProbe);
}

}  // namespace sluice
