#include "engine/keyspace/replay_expiries.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

namespace sluice {

void ReplayExpiries::add(unsigned shard, int database, int64_t expire_ms, uint64_t hash) {
  of(shard, database).added.push_back({static_cast<uint64_t>(expire_ms), hash});
}

void ReplayExpiries::remove(unsigned shard, int database, int64_t expire_ms, uint64_t hash) {
  Changes& changes = of(shard, database);
  changes.removed.push_back({static_cast<uint64_t>(expire_ms), hash});
  if (changes.removed.size() < changes.settle_at) return;
  settle(changes);
  // Proportional to the list, so that each removal pays only a logarithm for sorting.
  changes.settle_at = 1024 + changes.added.size() + 2 * changes.removed.size();
}

void ReplayExpiries::clear(unsigned shard, int database) { of(shard, database) = Changes(); }

// Times are mostly spread over a range, so one pass puts each expiry into a bucket of a few. That
// is two to three times faster than a comparison sort of all, and never much slower.
void ReplayExpiries::sort(std::vector<Expiry>& expiries) {
  constexpr size_t kWorthBuckets = 256;
  if (expiries.size() < kWorthBuckets || std::is_sorted(expiries.begin(), expiries.end())) {
    std::sort(expiries.begin(), expiries.end());
    return;
  }
  const auto [first, last] = std::minmax_element(
      expiries.begin(), expiries.end(),
      [](const Expiry& a, const Expiry& b) { return a.expire_ms < b.expire_ms; });
  const uint64_t least = first->expire_ms;
  const uint64_t range = last->expire_ms - least;
  int shift = 0;
  while (range >> shift >= expiries.size() / 4) ++shift;
  const auto bucket_of = [=](const Expiry& expiry) { return (expiry.expire_ms - least) >> shift; };
  // ends[i]: the number of expiries before bucket i, then, as they are placed, the end of the
  // filled part.
  std::vector<size_t> ends((range >> shift) + 2);
  for (const Expiry& expiry : expiries) ++ends[bucket_of(expiry) + 1];
  for (size_t i = 1; i < ends.size(); ++i) ends[i] += ends[i - 1];
  std::vector<Expiry> placed(expiries.size());
  for (const Expiry& expiry : expiries) placed[ends[bucket_of(expiry)]++] = expiry;
  auto from = placed.begin();
  for (size_t i = 0; i + 1 < ends.size(); ++i) {
    const auto to = placed.begin() + static_cast<std::ptrdiff_t>(ends[i]);
    std::sort(from, to);
    from = to;
  }
  expiries = std::move(placed);
}

// Removes from both lists what they share, and leaves them sorted.
void ReplayExpiries::settle(Changes& changes) {
  sort(changes.added);
  if (changes.removed.empty()) return;
  sort(changes.removed);
  std::vector<Expiry> added;
  std::vector<Expiry> removed;
  std::set_difference(changes.added.begin(), changes.added.end(), changes.removed.begin(),
                      changes.removed.end(), std::back_inserter(added));
  std::set_difference(changes.removed.begin(), changes.removed.end(), changes.added.begin(),
                      changes.added.end(), std::back_inserter(removed));
  changes.added = std::move(added);
  changes.removed = std::move(removed);
}

void ReplayExpiries::build(unsigned shard, int database, OrderedIndex<>& index) {
  Changes& changes = of(shard, database);
  settle(changes);
  for (const Expiry& expiry : changes.removed) {
    const bool was_there = index.erase(expiry.expire_ms, expiry.hash);
    CHECK(was_there);
  }
  for (const Expiry& expiry : changes.added) index.insert(expiry.expire_ms, expiry.hash);
  changes = Changes();
}

}  // namespace sluice
