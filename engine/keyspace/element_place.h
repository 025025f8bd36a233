// Where an element of a collection is looked for by its name: fetched into the cache in steps, so
// that the waits of several elements overlap.
//
// Threads: as for the map itself. Valid until the entry goes.
#pragma once

#include <cstdint>

namespace sluice {

class Entry;

// The field of a hash, the member of a set or of a sorted set, the job of a queue. An empty one, or
// one of an entry of another type, stands for nothing.
struct ElementPlace {
  const Entry* entry = nullptr;
  uint64_t hash = 0;

  // First the place in the map (for_change: an insert or an erase will follow), then, when that is
  // there, the element.
  void prefetch() const;
  void prefetch_for_change() const;
  void prefetch_node() const;
};

}  // namespace sluice
