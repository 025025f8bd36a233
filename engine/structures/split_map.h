// SplitMap: a hash map of nodes that others own. No insert ever pauses.
//
// Up to Traits::kMaxOrdered elements it is a plain array in order of insertion, searched by tags: a
// map of three elements costs 32 bytes of heap. Beyond that (or after harden()) it is extendible
// hashing by the high bits of a 64-bit hash: a directory of bounded tables (sub_map.h). A full
// table splits in two, and the directory doubles when it must, so the most expensive insert moves
// some 400 slots of 8 bytes (and copies the directory, 8 bytes for about 300 elements).
//
// Traits: `static Bytes key(const Node*)` and `static uint64_t hash(Bytes)`, a hash of which all
// bits are good; `kMaxOrdered`, at most 512. A node is aligned to 8 bytes. Callers pass hashes
// where they have them.
//
// Threads: one owner at a time (the shard's lock). Ownership: the map never owns nodes; it frees
// only its own tables. Callbacks must not change the map.
//
// Invariants:
// 1. Keys are unique: insert() REQUIRES an absent key.
// 2. While is_ordered(), walks go in order of insertion and erase keeps that order. A map that has
//    become hard remains hard until clear().
// 3. directory[i] for the 2^(D-d) cells that share d leading bits is the one table of depth d.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>

#include "engine/base/bytes.h"
#include "engine/base/check.h"
#include "engine/base/prefetch_line.h"
#include "engine/structures/sub_map.h"

namespace sluice {

template <class Node, class Traits>
class SplitMap {
 public:
  static constexpr size_t kMaxOrdered = Traits::kMaxOrdered;

  SplitMap() = default;
  ~SplitMap() { clear(); }
  SplitMap(SplitMap&& other) noexcept { swap(other); }
  SplitMap& operator=(SplitMap&& other) noexcept {
    if (this != &other) {
      clear();
      swap(other);
    }
    return *this;
  }
  SplitMap(const SplitMap&) = delete;
  SplitMap& operator=(const SplitMap&) = delete;

  void swap(SplitMap& other) noexcept {
    std::swap(storage_, other.storage_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    std::swap(depth_, other.depth_);
    std::swap(hard_, other.hard_);
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bool is_ordered() const { return !hard_; }

  Node* find(Bytes key, uint64_t hash) const {
    const uint64_t* slot =
        find_slot(hash, [&](const Node* node) { return Traits::key(node) == key; });
    return slot == nullptr ? nullptr : node_of(*slot);
  }
  Node* find(Bytes key) const { return find(key, Traits::hash(key)); }

  // The first node with exactly this hash for which pred(node) holds. pred runs before the hash is
  // compared, so it may be called with nodes of another hash.
  template <class Pred>
  Node* find_hash(uint64_t hash, Pred pred) const {
    const uint64_t* slot =
        find_slot(hash, [&](const Node* node) { return pred(node) && hash_of(node) == hash; });
    return slot == nullptr ? nullptr : node_of(*slot);
  }

  // Prefetches the table that find() or insert() of this hash will read.
  void prefetch(uint64_t hash) const {
    if (!hard_) return;
    const Cell& cell = directory()->begin()[cell_of(hash)];
    const uint64_t tag = SubMap::tag_of(hash, cell.base);
    const uint64_t* slot = cell.table->slots() + SubMap::home(tag, cell.age, cell.main);
    prefetch_line(slot);
    // The slots that skip_below reads at once mostly extend into the next cache line.
    prefetch_line(slot + SubMap::kReadAhead - 1);
  }

  // The same for insert() and erase(), which update the count in the table's header.
  void prefetch_for_change(uint64_t hash) const {
    prefetch(hash);
    if (hard_) prefetch_line(directory()->begin()[cell_of(hash)].table);
  }

  // The second step, when the table is in the cache: prefetches the node that find() will most
  // likely read.
  void prefetch_node(uint64_t hash) const {
    if (!hard_) return;
    const uint64_t* slot = find_slot(hash, [](const Node*) { return true; });
    if (slot == nullptr) return;
    const char* node = reinterpret_cast<const char*>(node_of(*slot));
    prefetch_line(node);
    // Even a small node often spans two cache lines.
    prefetch_line(node + 64);
  }

  // REQUIRES: no node with this key is in the map.
  void insert(Node* node, uint64_t hash) {
    if (!hard_) {
      if (size_ < kMaxOrdered) {
        if (size_ == capacity_) resize_small(size_ < 4 ? 4 : size_ < 8 ? 8 : size_ + size_ / 2);
        small()[size_++] = SubMap::make_slot(node, SubMap::tag_of(hash, 0));
        return;
      }
      harden();
    }
    SubMap* map = table(hash);
    if (map->count >= SubMap::max_count(map->total) ||
        !map->put(SubMap::make_slot(node, SubMap::tag_of(hash, map->base)))) {
      insert_with_room(node, hash);
    }
    ++size_;
  }

  // Replaces `from` by `to`: the same key at a new address.
  void replace(Node* from, Node* to, uint64_t hash) {
    uint64_t* slot = find_node_slot(from, hash);
    CHECK(slot != nullptr);
    *slot = SubMap::make_slot(to, SubMap::slot_tag(*slot));
  }

  // Unlinks the node with this key and returns it, or nullptr.
  Node* erase(Bytes key, uint64_t hash) {
    uint64_t* slot = const_cast<uint64_t*>(
        find_slot(hash, [&](const Node* node) { return Traits::key(node) == key; }));
    if (slot == nullptr) return nullptr;
    Node* node = node_of(*slot);
    erase_slot(slot, hash);
    return node;
  }

  // Unlinks this node without reading any other. Returns false if it is not in the map.
  bool erase_node(Node* node, uint64_t hash) {
    uint64_t* slot = find_node_slot(node, hash);
    if (slot == nullptr) return false;
    erase_slot(slot, hash);
    return true;
  }

  // In order of insertion while is_ordered(), else in hash order.
  template <class Fn>
  void for_each(Fn fn) const {
    if (!hard_) {
      for (size_t i = 0; i < size_; ++i) fn(node_of(small()[i]));
      return;
    }
    for (uint64_t cell = 0; cell < cells(); cell += span(table_at(cell))) {
      const SubMap* map = table_at(cell);
      for (uint32_t i = 0; i < map->total; ++i) {
        if (map->slots()[i] != SubMap::kEmpty) fn(node_of(map->slots()[i]));
      }
    }
  }

  // Forgets all nodes, frees all tables, and is ordered again.
  void clear() {
    if (hard_) {
      for (uint64_t cell = 0; cell < cells();) {
        SubMap* map = table_at(cell);
        cell += span(map);
        SubMap::destroy(map);
      }
    }
    std::free(storage_);
    storage_ = nullptr;
    size_ = 0;
    capacity_ = 0;
    depth_ = 0;
    hard_ = false;
  }

  // A random node, chosen by the random number `r`. All nodes are equally likely as long as the
  // tables are not nearly empty. Returns nullptr when the map is empty.
  Node* random(uint64_t r) const;

  // Visits, in hash order, the `count` elements next to the cursor (a prefix of 48 hash bits) and
  // all that share the last one's prefix. Returns the next cursor, or 0 at the end. So an element
  // that is in the map during a whole iteration is visited exactly once, whatever splits, merges or
  // hardens meanwhile. A call may visit fewer than `count` elements where many tables are empty.
  template <class Fn>
  uint64_t scan(uint64_t cursor, size_t count, Fn fn) const;

  // Gives up the order of insertion and becomes a hash table, whatever the size.
  void harden();

  // Prepares for `n` elements, so that filling the map splits no tables. Does nothing for a map
  // that is hard already.
  void reserve(size_t n);

  // For loading. Elements that were written by a walk over such a map arrive in the order of their
  // hashes, so the first ones show how many there will be in all. Reserves for those, up to
  // kMostByDensity. Does nothing if they arrived in another order or if the map is hard.
  void reserve_by_density();

  // Bytes on the heap, without the nodes and without the map object itself.
  size_t memory_bytes() const { return hard_ ? directory()->bytes : capacity_ * 8; }

  // Verifies every invariant; for tests.
  void check() const;

 private:
  // A table in trouble with fewer elements is crowded, not full: it is rebuilt instead of split.
  static constexpr uint32_t kMinSplit = 128;
  // An ordered array with more elements is spread over several tables when it becomes hard.
  static constexpr size_t kMaxInOneTable = 250;
  static constexpr double kMostByDensity = double{1 << 24};
  // Two buddies are merged when they hold at most this many together: far below what makes a table
  // split.
  static constexpr uint32_t kMaxMerged = 240;

  // The directory, which is small and cached, holds what find() needs of a table. The table's own
  // header would cost another cache line.
  struct Cell {
    SubMap* table;
    uint32_t main;
    uint8_t base;
    uint8_t age;  // The table's depth - base.
  };
  struct Directory {
    uint64_t bytes;                            // of all tables and the directory
    uint32_t at_depth[SubMap::kMaxDepth + 1];  // Number of tables of each depth.

    Cell* begin() { return reinterpret_cast<Cell*>(this + 1); }  // 2^depth_ of them.

    static size_t block_bytes(int depth) {
      return sizeof(Directory) + (size_t{1} << depth) * sizeof(Cell);
    }
  };

  uint64_t* small() const { return static_cast<uint64_t*>(storage_); }
  Directory* directory() const { return static_cast<Directory*>(storage_); }
  uint64_t cells() const { return uint64_t{1} << depth_; }
  // Two shifts, because a shift by 64 (depth 0) is undefined.
  uint64_t cell_of(uint64_t hash) const { return (hash >> 1) >> (63 - depth_); }
  SubMap* table_at(uint64_t cell) const { return directory()->begin()[cell].table; }
  SubMap* table(uint64_t hash) const { return table_at(cell_of(hash)); }
  uint64_t span(const SubMap* map) const { return uint64_t{1} << (depth_ - map->depth); }

  static Node* node_of(uint64_t slot) { return static_cast<Node*>(SubMap::slot_address(slot)); }
  static uint64_t hash_of(const Node* node) { return Traits::hash(Traits::key(node)); }

  template <class Match>
  const uint64_t* find_slot(uint64_t hash, Match match) const {
    if (!hard_) return find_in_array(SubMap::tag_of(hash, 0), match);
    const Cell& cell = directory()->begin()[cell_of(hash)];
    const uint64_t tag = SubMap::tag_of(hash, cell.base);
    const uint64_t* slot = cell.table->slots() + SubMap::home(tag, cell.age, cell.main);
    for (slot = cell.table->skip_below(slot, tag); SubMap::slot_tag(*slot) == tag; ++slot) {
      if (*slot == SubMap::kEmpty) break;
      if (match(node_of(*slot))) return slot;
    }
    return nullptr;
  }

  template <class Match>
  const uint64_t* find_in_array(uint64_t tag, Match match) const {
    const uint64_t* slot = small();
    const uint64_t* end = slot + size_;
    const uint64_t sample = tag << SubMap::kAddressBits;
    const auto same = [sample](uint64_t s) { return (s ^ sample) <= SubMap::kAddressMask; };
    while (slot < end) {
      // Compares eight at a time with one branch, as nearly all of them differ.
      const uint64_t* stop = end;
      for (; end - slot >= 8; slot += 8) {
        uint32_t hits = 0;
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) hits += same(slot[i]);
        if (hits == 0) continue;
        stop = slot + 8;
        break;
      }
      for (; slot < stop; ++slot) {
        if (same(*slot) && match(node_of(*slot))) return slot;
      }
    }
    return nullptr;
  }

  uint64_t* find_node_slot(const Node* wanted, uint64_t hash) const {
    return const_cast<uint64_t*>(
        find_slot(hash, [wanted](const Node* node) { return node == wanted; }));
  }

  void resize_small(size_t capacity) {
    capacity = std::min(capacity, kMaxOrdered);
    storage_ = std::realloc(storage_, capacity * 8);
    CHECK(storage_ != nullptr);
    capacity_ = static_cast<uint32_t>(capacity);
  }

  void erase_slot(uint64_t* slot, uint64_t hash) {
    --size_;
    if (hard_) {
      SubMap* map = table(hash);
      map->remove(slot);
      if (map->count < map->total / 4) shrink(hash);
      return;
    }
    const size_t at = static_cast<size_t>(slot - small());
    std::memmove(slot, slot + 1, (size_ - at) * 8);
    if (capacity_ > 8 && size_ < capacity_ / 4) resize_small(capacity_ / 2);
  }

  // Work on tables, which is rare.
  void insert_with_room(Node* node, uint64_t hash);
  bool may_split(const SubMap* map) const;
  void split(SubMap* map, uint64_t hash);
  void shrink(uint64_t hash);
  bool merge(SubMap* map, uint64_t hash);
  void grow_with(SubMap* map, uint64_t slot, uint64_t hash);
  void set_table(SubMap* map, uint64_t hash);
  void retire(SubMap* map);
  void set_directory_depth(int depth);
  static void retag(uint64_t* slots, uint32_t n, int base);
  void spread(size_t n);
  template <class Fn>
  uint64_t scan_ordered(uint64_t cursor, size_t count, Fn& fn) const;

  void* storage_ = nullptr;  // The array of slots, or the Directory when hard_.
  uint64_t size_ = 0;
  uint32_t capacity_ = 0;  // Of the array; 0 when hard_.
  uint8_t depth_ = 0;      // Of the directory.
  bool hard_ = false;
};

}  // namespace sluice

#include "engine/structures/split_map_inl.h"
