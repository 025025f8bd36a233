#include "engine/access/acl_log.h"

#include <algorithm>
#include <utility>

namespace sluice {

namespace {

// As in Redis.
constexpr size_t kSearchedEntries = 10;
constexpr int64_t kGroupingMs = 60'000;

bool are_equal(const AclLogEntry& a, const AclLogEntry& b) {
  return Bytes(a.reason) == b.reason && a.context == b.context && a.object == b.object &&
         a.username == b.username && b.at_ms - a.at_ms <= kGroupingMs;
}

}  // namespace

void AclLog::add(AclLogEntry entry, size_t most) {
  MutexLock lock(mutex_);
  const auto searched =
      entries_.begin() + static_cast<ptrdiff_t>(std::min(kSearchedEntries, entries_.size()));
  const auto same = std::find_if(entries_.begin(), searched,
                                 [&](const AclLogEntry& other) { return are_equal(other, entry); });
  if (same != searched) {
    entry.count += same->count;
    entries_.erase(same);
    entries_.push_front(std::move(entry));
    return;
  }
  entries_.push_front(std::move(entry));
  while (entries_.size() > most) entries_.pop_back();
}

std::vector<AclLogEntry> AclLog::newest(size_t count) const {
  MutexLock lock(mutex_);
  const size_t shown = std::min(count, entries_.size());
  return {entries_.begin(), entries_.begin() + static_cast<ptrdiff_t>(shown)};
}

void AclLog::reset() {
  MutexLock lock(mutex_);
  entries_.clear();
}

}  // namespace sluice
