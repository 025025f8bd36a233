#include "engine/queue/adopted_keys.h"

#include <cmath>
#include <limits>

#include "engine/base/check.h"
#include "engine/queue/queue_config.h"

namespace sluice {

uint8_t ScoreBands::band_of(double score) const {
  const double nearest =
      std::floor((score - static_cast<double>(wall_ms)) / static_cast<double>(unit) + 0.5);
  int band = static_cast<int>(std::clamp(nearest, 0.0, static_cast<double>(kBands - 1)));
  // The comparisons that count ranges of scores, so that rounding never counts a member twice.
  while (band > 0 && score < lowest_score(band)) --band;
  while (band < kBands - 1 && score >= lowest_score(band + 1)) ++band;
  return static_cast<uint8_t>(band);
}

const AdoptedMember* AdoptedKeys::find(Bytes id) const {
  const auto found = members_.find(id);
  return found == members_.end() ? nullptr : &found->second;
}

void AdoptedKeys::place(const Node& node, bool in) {
  const AdoptedMember& member = node.second;
  if (!member.active) return;
  const auto since_ms = static_cast<uint64_t>(member.since_ms);
  const auto since_steady = static_cast<uint64_t>(member.since_steady);
  active_in_[member.band] += in ? 1 : -1;
  if (in) {
    runs_.insert(since_ms, member.number, &node);
    leases_.insert(since_steady, member.number, &node);
    return;
  }
  const bool was_there = runs_.erase(since_ms, member.number, &node) &&
                         leases_.erase(since_steady, member.number, &node);
  CHECK(was_there);
}

void AdoptedKeys::put(Bytes id, const AdoptedMember& member) {
  auto found = members_.find(id);
  if (found == members_.end()) {
    found = members_.emplace(std::string(id), AdoptedMember()).first;
    id_bytes_ += id.size();
  } else {
    place(*found, false);
  }
  found->second = member;
  found->second.number = next_number_++;
  place(*found, true);
}

void AdoptedKeys::erase(Bytes id) {
  const auto found = members_.find(id);
  if (found == members_.end()) return;
  place(*found, false);
  id_bytes_ -= id.size();
  members_.erase(found);
}

int64_t AdoptedKeys::next_due_steady() const {
  if (definition.lease_ms == 0 || leases_.empty()) return std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(leases_.front().major) + definition.lease_ms;
}

size_t AdoptedKeys::memory_bytes() const {
  constexpr size_t kTreeNodeBytes = 40;  // what std::map keeps with each of its nodes
  size_t bytes = sizeof(AdoptedKeys) + sizeof(AdoptedGroup) + runs_.memory_bytes() +
                 leases_.memory_bytes() + members_.size() * (kTreeNodeBytes + sizeof(Node)) +
                 id_bytes_;
  for (const std::string& key : definition.pending) bytes += sizeof(key) + key.size();
  return bytes;
}

}  // namespace sluice
