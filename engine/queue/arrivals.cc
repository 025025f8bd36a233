#include "engine/queue/arrivals.h"

#include <algorithm>

namespace sluice {

bool Arrivals::make_room(uint64_t at) {
  const size_t most = kSmall + count_ * kMostPlacesPerJob;
  if (at >= most || at >= jobs_.capacity()) {
    const auto used = std::find_if(jobs_.begin(), jobs_.end(), [](const Job* job) { return job; });
    const auto empty = static_cast<size_t>(used - jobs_.begin());
    // At least a quarter, so that each place is moved a few times at most.
    if (empty >= jobs_.size() / 4) {
      jobs_.erase(jobs_.begin(), used);
      first_ += empty;
      at -= empty;
    }
  }
  if (at >= most) return false;
  jobs_.resize(at + 1);
  return true;
}

}  // namespace sluice
