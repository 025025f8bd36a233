#include "storage/journal_stats.h"

#include <algorithm>
#include <bit>

namespace sluice {

void JournalMeter::count_commit(size_t bytes, uint64_t units) {
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  MutexLock lock(mutex_);
  ++stats_.commits;
  stats_.units += units;
  stats_.commit_bytes += bytes;
  stats_.last_commit_units = units;
  stats_.last_commit_bytes = bytes;
}

void JournalMeter::count_sync(std::chrono::steady_clock::duration took) {
  const auto us =
      static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(took).count());
  const uint64_t mean = mean_sync_us();
  mean_sync_us_.store(mean == 0 ? us : mean - mean / 8 + us / 8, std::memory_order_relaxed);
  MutexLock lock(mutex_);
  ++stats_.syncs;
  stats_.sync_us_total += us;
  stats_.sync_us_max = std::max(stats_.sync_us_max, us);
  const size_t bucket = static_cast<size_t>(std::bit_width(us));
  ++stats_.sync_us[std::min(bucket, JournalStats::kSyncBuckets - 1)];
}

JournalStats JournalMeter::stats() const {
  MutexLock lock(mutex_);
  return stats_;
}

}  // namespace sluice
