// The place of an element of a collection, by its name: prefetched in steps, so that the waits for
// several elements overlap.
//
// Threads: as for the map itself. Valid until the entry is removed.
#pragma once

#include <cstdint>

namespace sluice {

class Entry;

// The field of a hash, the member of a set or of a sorted set, the job of a queue. A default value,
// or one of an entry of another type, has no effect.
struct ElementPlace {
  const Entry* entry = nullptr;
  uint64_t hash = 0;

  // First prefetch the place in the map (for_change: before an insert or an erase), then, when that
  // has arrived, the element.
  void prefetch() const;
  void prefetch_for_change() const;
  void prefetch_node() const;
};

}  // namespace sluice
