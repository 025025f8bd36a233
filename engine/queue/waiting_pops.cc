#include "engine/queue/waiting_pops.h"

#include <algorithm>

namespace sluice {

namespace {

void count_down(std::map<std::string, size_t, std::less<>>& counts, const std::string& name) {
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
  (filter.cap == 0 ? uncapped_ : capped_[filter.cap]).add(filter);
}

void WaitingPops::remove(const PopFilter& filter) {
  if (filter.cap == 0) return uncapped_.remove(filter);
  const auto found = capped_.find(filter.cap);
  found->second.remove(filter);
  if (found->second.empty()) capped_.erase(found);
}

size_t WaitingPops::accepting(std::span<const Bytes> keys, uint64_t used) const {
  size_t accepting = uncapped_.accepting(keys);
  size_t caps = 0;
  for (const auto& [cap, takers] : capped_) {
    if (cap <= used + accepting || ++caps > kMostCaps) break;
    accepting += std::min<size_t>(takers.accepting(keys), cap - used - accepting);
  }
  return accepting;
}

}  // namespace sluice
