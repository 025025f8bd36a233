#include "storage/free_disk.h"

#include <algorithm>

namespace sluice {

namespace {

// Free space is checked whenever this fraction of min_bytes() has been written.
constexpr uint64_t kProbesPerReserve = 32;
constexpr uint64_t kLeastPerProbe = uint64_t{1} << 20;

}  // namespace

void FreeDisk::probe(uint64_t written) {
  probed_at_ = written;
  const Result<uint64_t> free = log_->free_disk_bytes();
  if (!free.ok()) return;  // unknown free space is no reason to refuse writes
  bytes_.store(free.value(), std::memory_order_relaxed);
  const bool below = free.value() < min_bytes();
  if (below_min_.exchange(below, std::memory_order_relaxed) != below && on_below_) on_below_(below);
}

void FreeDisk::probe_often(uint64_t written) {
  const uint64_t often = std::max(min_bytes() / kProbesPerReserve, kLeastPerProbe);
  if (written - probed_at_ >= often) probe(written);
}

}  // namespace sluice
