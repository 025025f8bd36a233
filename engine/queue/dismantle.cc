// The end of a queue, in steps: each frees a bounded number of things, so that no hold of the
// shard's lock is long, whatever the queue held: jobs, groups, rules, or entries of indexes.
#include "engine/queue/adopted_keys.h"
#include "engine/queue/queue.h"

namespace sluice {

namespace {

// Entries of an index cost this much less than things with an allocation of their own.
constexpr size_t kEntriesAtOnce = 16;

template <class Index>
void drain(Index& index, size_t& left) {
  for (; left != 0 && !index.empty(); --left) {
    for (size_t i = 0; i < kEntriesAtOnce && !index.empty(); ++i) index.pop_front();
  }
}

template <class Map>
void drain_map(Map& map, size_t& left) {
  for (; left != 0 && !map.empty(); --left) map.erase(map.begin());
}

// Owned nodes of a SplitMap, which `destroy` frees once they are out of it.
template <class Node, class Traits, class Destroy>
void drain_nodes(SplitMap<Node, Traits>& map, size_t& left, Destroy destroy) {
  std::vector<Node*> some;
  map.scan(0, left, [&](Node* node) { some.push_back(node); });
  for (Node* node : some) {
    map.erase_node(node, Traits::hash(Traits::key(node)));
    destroy(node);
  }
  left -= std::min(left, some.size());
}

}  // namespace

bool Queue::dismantle(size_t limit) {
  size_t left = limit;
  drain_nodes(jobs, left, Job::destroy);
  if (!jobs.empty()) return false;
  for (auto* index : {&delays, &ttls, &leases, &runs, &tied, &ended[0], &ended[1]}) {
    drain(*index, left);
  }
  for (; left != 0 && !dependents.empty(); --left) {
    drain(dependents.begin()->second, left);
    if (left == 0) return false;
    dependents.erase(dependents.begin());
  }
  drain_map(workers_, left);
  lanes.dismantle(left);
  events.dismantle(left);
  config.drop_rules(left);
  return left != 0 && (adopted == nullptr || adopted->dismantle(left));
}

void Lanes::dismantle(size_t& left) {
  while (left != 0 && !lanes_.empty()) {
    std::vector<Lane*> some;
    lanes_.scan(0, left, [&](Lane* lane) { some.push_back(lane); });
    for (Lane* lane : some) {
      for (auto* index : {&lane->tickets, &lane->gated, &lane->stack}) drain(*index, left);
      if (left == 0) return;
      lanes_.erase_node(lane, LaneTraits::hash(lane->id.bytes()));
      delete lane;
      --left;
    }
  }
  for (const uint8_t number : used_bands_) {
    Band& band = *bands_[number];
    drain(band.pending, left);
    drain(band.later, left);
    drain(band.open, left);
    for (; left != 0 && !band.classes.empty(); --left) {
      drain(band.classes.begin()->second->ready, left);
      if (left == 0) return;
      band.classes.erase(band.classes.begin());
    }
  }
  drain(backlog_, left);
  drain(refills_, left);
  drain_map(key_sets_, left);
  drain_nodes(keys_, left, [](Key* key) { delete key; });
  drain_nodes(groups_, left, [](Group* group) { delete group; });
  for (; left != 0 && idle_rates_.drop_one(); --left) {
  }
}

void QueueConfig::drop_rules(size_t& left) {
  for (Rules& rules : rules_) {
    drain_map(rules.names, left);
    drain_map(rules.globs, left);
  }
}

}  // namespace sluice
