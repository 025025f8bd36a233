#include "engine/queue/waiting_pops.h"

#include <algorithm>

namespace sluice {

namespace {

template <class Counts, class Name>
void count_down(Counts& counts, const Name& name) {
  const auto found = counts.find(name);
  if (--found->second == 0) counts.erase(found);
}

}  // namespace

void WaitingPops::Takers::add(const PopFilter& filter) {
  if (filter.match.empty()) ++without_match;
  for (const std::string& key : filter.match) ++with_match[key];
}

void WaitingPops::Takers::remove(const PopFilter& filter) {
  if (filter.match.empty()) --without_match;
  for (const std::string& key : filter.match) count_down(with_match, key);
}

size_t WaitingPops::Takers::accepting(std::span<const Bytes> keys) const {
  size_t most = 0;
  if (with_match.empty()) return without_match;
  for (const Bytes key : keys) {
    const auto found = with_match.find(key);
    if (found != with_match.end()) most = std::max(most, found->second);
  }
  return without_match + most;
}

void WaitingPops::add(const PopFilter& filter) {
  if (filter.cap == 0) return uncapped_.add(filter);
  capped_.add(filter);
  ++caps_[filter.cap];
}

void WaitingPops::remove(const PopFilter& filter) {
  if (filter.cap == 0) return uncapped_.remove(filter);
  capped_.remove(filter);
  count_down(caps_, filter.cap);
}

size_t WaitingPops::accepting(std::span<const Bytes> keys, uint64_t used) const {
  const size_t always = uncapped_.accepting(keys);
  if (caps_.empty() || caps_.begin()->first <= used) return always;
  return always + std::min<size_t>(capped_.accepting(keys), caps_.begin()->first - used);
}

}  // namespace sluice
