#include "engine/keyspace/element_place.h"

#include "engine/keyspace/collections.h"
#include "engine/keyspace/entry.h"
#include "engine/queue/queue.h"

namespace sluice {

namespace {

// Calls visit with the map that holds the collection's elements.
template <class Visit>
void with_elements(const Entry* entry, Visit visit) {
  if (entry == nullptr) return;
  switch (entry->type()) {
    case Type::kHash:
      return visit(entry->object<Hash>().fields);
    case Type::kSet:
      return visit(entry->object<Set>().members);
    case Type::kSortedSet:
      return visit(entry->object<SortedSet>().members);
    case Type::kQueue:
      return visit(entry->object<Queue>().jobs);
    default:
      return;
  }
}

}  // namespace

void ElementPlace::prefetch() const {
  with_elements(entry, [this](const auto& map) { map.prefetch(hash); });
}

void ElementPlace::prefetch_for_change() const {
  with_elements(entry, [this](const auto& map) { map.prefetch_for_change(hash); });
}

void ElementPlace::prefetch_node() const {
  with_elements(entry, [this](const auto& map) { map.prefetch_node(hash); });
}

}  // namespace sluice
