// The rarer operations of SplitMap: growth, shrinkage, scan, random choice, verification.
// Include split_map.h, not this file.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "engine/structures/split_map.h"

namespace sluice {

// Recomputes the tags of packed, sorted slots from their nodes, for another base.
template <class Node, class Traits>
void SplitMap<Node, Traits>::retag(uint64_t* slots, uint32_t n, int base) {
  constexpr uint32_t kAhead = 8;  // Nodes are spread over the heap: prefetch several in parallel.
  for (uint32_t i = 0; i < n; ++i) {
    if (i + kAhead < n) prefetch_line(node_of(slots[i + kAhead]));
    const Node* node = node_of(slots[i]);
    slots[i] = SubMap::make_slot(node, SubMap::tag_of(hash_of(node), base));
  }
  if (!std::is_sorted(slots, slots + n, SubMap::tag_less)) {
    std::sort(slots, slots + n, SubMap::tag_less);
  }
}

template <class Node, class Traits>
void SplitMap<Node, Traits>::set_directory_depth(int depth) {
  const auto old_cells = cells();
  Directory* old = directory();
  auto* fresh = static_cast<Directory*>(std::malloc(Directory::block_bytes(depth)));
  CHECK(fresh != nullptr);
  *fresh = *old;
  if (depth > depth_) {
    for (uint64_t i = 0; i < old_cells; ++i) {
      fresh->begin()[2 * i] = fresh->begin()[2 * i + 1] = old->begin()[i];
    }
  } else {
    for (uint64_t i = 0; i < old_cells / 2; ++i) fresh->begin()[i] = old->begin()[2 * i];
  }
  fresh->bytes += Directory::block_bytes(depth) - Directory::block_bytes(depth_);
  std::free(old);
  storage_ = fresh;
  depth_ = static_cast<uint8_t>(depth);
}

// Stores a new table in all directory cells that belong to it.
template <class Node, class Traits>
void SplitMap<Node, Traits>::set_table(SubMap* map, uint64_t hash) {
  const uint64_t width = span(map);
  const uint64_t begin = cell_of(hash) & ~(width - 1);
  const Cell cell{map, map->main, map->base, static_cast<uint8_t>(map->depth - map->base)};
  std::fill_n(directory()->begin() + begin, width, cell);
  ++directory()->at_depth[map->depth];
  directory()->bytes += map->block_bytes();
}

template <class Node, class Traits>
void SplitMap<Node, Traits>::retire(SubMap* map) {
  --directory()->at_depth[map->depth];
  directory()->bytes -= map->block_bytes();
  SubMap::destroy(map);
}

// With a bad hash, splitting may not make a table smaller. The directory stays proportional to the
// number of elements, and the table grows instead.
template <class Node, class Traits>
bool SplitMap<Node, Traits>::may_split(const SubMap* map) const {
  if (map->depth >= SubMap::kMaxDepth) return false;
  return map->depth < depth_ || (uint64_t{2} << depth_) <= 64 + size_ / 8;
}

template <class Node, class Traits>
void SplitMap<Node, Traits>::insert_with_room(Node* node, uint64_t hash) {
  for (;;) {  // Every round deepens the table, and may_split bounds the depth.
    SubMap* map = table(hash);
    const uint64_t slot = SubMap::make_slot(node, SubMap::tag_of(hash, map->base));
    if (map->count < SubMap::max_count(map->total) && map->put(slot)) return;
    if (!map->is_full_size() || map->count < kMinSplit || !may_split(map)) {
      grow_with(map, slot, hash);
      return;
    }
    split(map, hash);
  }
}

template <class Node, class Traits>
void SplitMap<Node, Traits>::split(SubMap* map, uint64_t hash) {
  if (map->depth == depth_) set_directory_depth(depth_ + 1);
  const int depth = map->depth + 1;
  const uint64_t bit = uint64_t{1} << (64 - depth);
  const uint32_t n = map->count;
  int base = map->base;
  uint64_t* slots = map->pack();
  if (depth - base > SubMap::kMaxTagAge) {
    base = map->depth;  // Not `depth`: the bit that decides this split must be in the tag.
    retag(slots, n, base);
  }
  const uint64_t tag_bit = uint64_t{1} << (63 - (map->depth - base));
  const auto middle = static_cast<uint32_t>(
      std::partition_point(slots, slots + n, [&](uint64_t s) { return (s & tag_bit) == 0; }) -
      slots);
  SubMap* low = SubMap::create(slots, middle, middle + middle / 8 + 1, depth, base);
  SubMap* high =
      SubMap::create(slots + middle, n - middle, n - middle + (n - middle) / 8 + 1, depth, base);
  set_table(low, hash & ~bit);
  set_table(high, hash | bit);
  retire(map);
}

template <class Node, class Traits>
void SplitMap<Node, Traits>::grow_with(SubMap* map, uint64_t slot, uint64_t hash) {
  const uint32_t n = map->count;
  std::vector<uint64_t> sorted;
  sorted.reserve(n + 1);
  const uint64_t* slots = map->pack();
  const uint64_t* place = std::upper_bound(slots, slots + n, slot, SubMap::tag_less);
  sorted.insert(sorted.end(), slots, place);
  sorted.push_back(slot);
  sorted.insert(sorted.end(), place, slots + n);
  // A crowded table with free slots gets fewer homes (see SubMap::create), not more slots.
  const uint32_t room = n < map->total / 2 ? n + n / 4 + 1 : SubMap::max_count(map->total) + 1;
  SubMap* fresh =
      SubMap::create(sorted.data(), n + 1, std::max(room, n + 1), map->depth, map->base);
  set_table(fresh, hash);
  retire(map);
}

// After an erase that has left less than a quarter: merges the table with its buddy, or moves it to
// a smaller block.
template <class Node, class Traits>
void SplitMap<Node, Traits>::shrink(uint64_t hash) {
  SubMap* map = table(hash);
  if (merge(map, hash)) {
    merge(table(hash), hash);  // At most one level further up: the work stays bounded.
    return;
  }
  if (map->total == SubMap::kMinTotal) return;
  const uint32_t n = map->count;
  SubMap* fresh = SubMap::create(map->pack(), n, n + n / 2 + 1, map->depth, map->base);
  set_table(fresh, hash);
  retire(map);
}

template <class Node, class Traits>
bool SplitMap<Node, Traits>::merge(SubMap* map, uint64_t hash) {
  if (map->depth == 0) return false;
  const int depth = map->depth - 1;
  const uint64_t bit = uint64_t{1} << (63 - depth);
  SubMap* buddy = table(hash ^ bit);
  if (buddy->depth != map->depth || map->count + buddy->count > kMaxMerged) return false;
  SubMap* low = (hash & bit) == 0 ? map : buddy;
  SubMap* high = low == map ? buddy : map;
  uint64_t sorted[kMaxMerged];
  const uint32_t n = low->count + high->count;
  std::copy_n(low->pack(), low->count, sorted);
  std::copy_n(high->pack(), high->count, sorted + low->count);
  int base = low->base;
  if (base != high->base || base > depth) {
    base = std::max(0, depth - 2);  // Room for a few merges and a few splits before the next one.
    retag(sorted, n, base);
  }
  SubMap* merged = SubMap::create(sorted, n, n + n / 4 + 1, depth, base);
  set_table(merged, hash);
  retire(low);
  retire(high);
  const uint32_t* at_depth = directory()->at_depth;
  // Two unused levels are required, so that the directory does not double and halve in turn.
  if (depth_ >= 2 && at_depth[depth_] == 0 && at_depth[depth_ - 1] == 0) {
    set_directory_depth(depth_ - 1);
  }
  return true;
}

template <class Node, class Traits>
void SplitMap<Node, Traits>::harden() {
  if (hard_) return;
  if (size_ > kMaxInOneTable) return spread(size_);
  auto* fresh = static_cast<Directory*>(std::calloc(1, Directory::block_bytes(0)));
  CHECK(fresh != nullptr);
  const auto n = static_cast<uint32_t>(size_);
  std::sort(small(), small() + n, SubMap::tag_less);
  SubMap* map = SubMap::create(small(), n, n + n / 2, 0, 0);
  std::free(storage_);
  storage_ = fresh;
  fresh->bytes = Directory::block_bytes(0);
  capacity_ = 0;
  hard_ = true;
  set_table(map, 0);
}

template <class Node, class Traits>
void SplitMap<Node, Traits>::reserve(size_t n) {
  if (hard_ || n <= size_) return;
  if (n <= kMaxOrdered) {
    if (n > capacity_) resize_small(n);
    return;
  }
  spread(n);
}

template <class Node, class Traits>
void SplitMap<Node, Traits>::reserve_by_density() {
  if (hard_) return;
  uint64_t last = 0;
  for (size_t i = 0; i < size_; ++i) {
    const uint64_t hash = hash_of(node_of(small()[i]));
    if (hash < last) return;
    last = hash;
  }
  // The hashes so far fill [0, last] of the whole range.
  const double share = static_cast<double>(last) / std::ldexp(1.0, 64);
  const double expected = static_cast<double>(size_) / std::max(share, 0x1p-30);
  reserve(static_cast<size_t>(std::min(expected, kMostByDensity)));
}

// Makes the map hard with tables for `n` elements and moves the present ones into them.
template <class Node, class Traits>
void SplitMap<Node, Traits>::spread(size_t n) {
  const std::vector<uint64_t> slots(small(), small() + size_);
  clear();
  // 320 slots in use on average: with a good hash (deviation about 18) tables stay below their
  // maximum of 413.
  int depth = 0;
  while (depth < 30 && (n >> depth) > 320) ++depth;
  storage_ = std::calloc(1, Directory::block_bytes(depth));
  CHECK(storage_ != nullptr);
  directory()->bytes = Directory::block_bytes(depth);
  depth_ = static_cast<uint8_t>(depth);
  hard_ = true;
  const auto room = static_cast<uint32_t>(std::min<uint64_t>((n >> depth) * 5 / 4 + 8, 413));
  for (uint64_t cell = 0; cell < cells(); ++cell) {
    const uint64_t hash = depth == 0 ? 0 : cell << (64 - depth);
    set_table(SubMap::create(nullptr, 0, room, depth, depth), hash);
  }
  for (uint64_t slot : slots) {
    Node* node = node_of(slot);
    insert(node, hash_of(node));
  }
}

template <class Node, class Traits>
Node* SplitMap<Node, Traits>::random(uint64_t r) const {
  if (size_ == 0) return nullptr;
  const auto next = [&r] {  // One step of a mixer: the caller's number is only the seed.
    r += 0x9e3779b97f4a7c15;
    uint64_t x = r;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
  };
  if (!hard_) return node_of(small()[(next() >> 32) * size_ >> 32]);
  // Every directory cell and slot index is equally likely. Rejected are an index past the end, an
  // empty slot, and a share of the hits in tables that own several cells.
  uint64_t width = SubMap::kFullTotal;
  if (depth_ == 0) width = table_at(0)->total;
  for (int attempt = 0; attempt < 128; ++attempt) {
    const uint64_t x = next();
    const SubMap* map = table(x);
    const uint64_t index = (x & 0xffffffff) * std::max<uint64_t>(width, map->total) >> 32;
    if (index >= map->total || map->slots()[index] == SubMap::kEmpty) continue;
    if ((next() & (span(map) - 1)) != 0) continue;
    return node_of(map->slots()[index]);
  }
  // The tables are nearly empty: take the next element.
  const uint64_t begin = cell_of(next());
  for (uint64_t i = 0; i < cells(); ++i) {
    const SubMap* map = table_at((begin + i) & (cells() - 1));
    if (map->count == 0) continue;
    uint64_t skip = next() % map->count;
    for (const uint64_t* slot = map->slots();; ++slot) {
      if (*slot != SubMap::kEmpty && skip-- == 0) return node_of(*slot);
    }
  }
  return nullptr;
}

template <class Node, class Traits>
template <class Fn>
uint64_t SplitMap<Node, Traits>::scan_ordered(uint64_t cursor, size_t count, Fn& fn) const {
  std::pair<uint64_t, Node*> found[kMaxOrdered];
  size_t n = 0;
  for (size_t i = 0; i < size_; ++i) {
    Node* node = node_of(small()[i]);
    const uint64_t prefix = hash_of(node) >> 16;
    if (prefix >= cursor) found[n++] = {prefix, node};
  }
  std::sort(found, found + n, [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < n; ++i) {
    if (i >= count && found[i].first != found[i - 1].first) return found[i].first;
    fn(found[i].second);
  }
  return 0;
}

template <class Node, class Traits>
template <class Fn>
uint64_t SplitMap<Node, Traits>::scan(uint64_t cursor, size_t count, Fn fn) const {
  count = std::max<size_t>(count, 1);
  if (!hard_) return scan_ordered(cursor, count, fn);
  if (cursor >> 48 != 0) return 0;  // not a cursor of ours
  const uint64_t start = cursor << 16;
  std::vector<std::pair<uint64_t, Node*>> group;  // Elements that share a tag, in hash order.
  size_t visited = 0;
  uint64_t last_prefix = 0;
  uint64_t tables_left = 16 + count;  // Empty tables are rare, but this bounds the work on them.
  for (uint64_t cell = cell_of(start); cell < cells();) {
    const SubMap* map = table_at(cell);
    const bool is_first = cell == cell_of(start);
    const uint64_t* slot = is_first ? map->first(SubMap::tag_of(start, map->base)) : map->slots();
    const uint64_t* end = map->slots() + map->total;
    while (slot < end) {
      if (*slot == SubMap::kEmpty) {
        ++slot;
        continue;
      }
      const uint64_t tag = SubMap::slot_tag(*slot);
      group.clear();
      for (; slot < end && *slot != SubMap::kEmpty && SubMap::slot_tag(*slot) == tag; ++slot) {
        group.emplace_back(hash_of(node_of(*slot)) >> 16, node_of(*slot));
      }
      std::sort(group.begin(), group.end(),
                [](const auto& a, const auto& b) { return a.first < b.first; });
      for (const auto& [prefix, node] : group) {
        if (prefix < cursor) continue;
        if (visited >= count && prefix != last_prefix) return prefix;
        fn(node);
        ++visited;
        last_prefix = prefix;
      }
    }
    cell = (cell & ~(span(map) - 1)) + span(map);
    if (--tables_left == 0 && cell < cells()) return cell << (48 - depth_);
  }
  return 0;
}

template <class Node, class Traits>
void SplitMap<Node, Traits>::check() const {
  if (!hard_) {
    CHECK(size_ <= capacity_ && capacity_ <= kMaxOrdered && depth_ == 0);
    for (size_t i = 0; i < size_; ++i) {
      CHECK(SubMap::slot_tag(small()[i]) == SubMap::tag_of(hash_of(node_of(small()[i])), 0));
    }
    return;
  }
  uint64_t count = 0;
  uint64_t bytes = Directory::block_bytes(depth_);
  uint32_t at_depth[SubMap::kMaxDepth + 1] = {};
  for (uint64_t cell = 0; cell < cells();) {
    const SubMap* map = table_at(cell);
    CHECK(map->depth <= depth_ && (cell & (span(map) - 1)) == 0);
    for (uint64_t i = 0; i < span(map); ++i) {
      const Cell& copy = directory()->begin()[cell + i];
      CHECK(copy.table == map && copy.main == map->main && copy.base == map->base);
      CHECK(copy.age == map->depth - map->base);
    }
    CHECK(map->base <= map->depth && map->depth - map->base <= SubMap::kMaxTagAge);
    CHECK(map->slots()[map->total] == SubMap::kEmpty);
    uint32_t in_table = 0;
    uint64_t last_tag = 0;
    uint32_t run_begin = 0;  // First slot of the run of occupied slots.
    for (uint32_t i = 0; i < map->total; ++i) {
      const uint64_t slot = map->slots()[i];
      if (slot == SubMap::kEmpty) {
        run_begin = i + 1;
        continue;
      }
      const uint64_t hash = hash_of(node_of(slot));
      const uint64_t tag = SubMap::slot_tag(slot);
      CHECK(tag == SubMap::tag_of(hash, map->base) && tag >= last_tag);
      CHECK(map->home(tag) >= run_begin && map->home(tag) <= i);
      CHECK(table(hash) == map);
      last_tag = tag;
      ++in_table;
    }
    CHECK(in_table == map->count);
    count += in_table;
    bytes += map->block_bytes();
    ++at_depth[map->depth];
    cell += span(map);
  }
  CHECK(count == size_ && bytes == directory()->bytes);
  CHECK(std::equal(at_depth, at_depth + SubMap::kMaxDepth + 1, directory()->at_depth));
}

}  // namespace sluice
