// OrderedIndex: a counted B+tree. It is the ready, delay and lease index of a queue and the order
// of a sorted set: push, pop, rank, range and count, all in O(log n).
//
// Entries are (major, minor, value), ordered by major, then minor, then TieOrder(value, value).
// Equal entries are allowed (a multiset); a new one goes after its equals. Value is trivially
// copyable and at most 8-aligned; an empty struct (NoValue) takes no space.
//
// Nodes hold up to 64 entries. An empty node is freed; one that has fallen to a quarter is joined
// with a neighbour that has room. A split cuts at the place where a run of inserts grows, so
// entries that arrive in order, even within bands of the order, fill nodes completely. Elsewhere a
// full leaf shares entries with a neighbour that has room before it splits, so leaves are some 85 %
// full when entries arrive nearly in order or at random. A small root leaf grows 4 -> 16 -> full.
//
// Threads: one owner at a time (the shard's lock). Ownership: the index owns its nodes, but not the
// objects that values point to. A pointer must be valid as long as its entry is in the index. Any
// change invalidates iterators. Invariants: ordered_index_node.h; check() verifies them.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/prefetch_line.h"
#include "engine/structures/ordered_index_node.h"

namespace sluice {

// A double as an integer of the same order. Both zeros map to one number. REQUIRES: not a NaN.
inline uint64_t order_preserving(double number) {
  if (number == 0) number = 0;  // -0.0 becomes 0.0.
  const auto bits = std::bit_cast<uint64_t>(number);
  return (bits >> 63) != 0 ? ~bits : bits | uint64_t{1} << 63;
}

template <class Value = NoValue, class TieOrder = NoTie>
class OrderedIndex {
  static_assert(std::is_trivially_copyable_v<Value> && alignof(Value) <= 8);

 public:
  using Leaf = OrderedLeaf<Value, TieOrder>;
  using Inner = OrderedInner<Value, TieOrder>;
  using Entry = OrderedEntry<Value>;

  // A position in the order. It moves both ways and becomes invalid past either end.
  class Iterator {
   public:
    Iterator() = default;
    Iterator(const Leaf* leaf, uint32_t at) : leaf_(leaf), at_(at) {}

    bool valid() const { return leaf_ != nullptr; }
    uint64_t major() const { return leaf_->keys().majors[at_]; }
    uint64_t minor() const { return leaf_->keys().minors[at_]; }
    Value value() const { return entry().value; }
    Entry entry() const { return leaf_->entry(at_); }
    void next() {
      if (++at_ < leaf_->count) return;
      leaf_ = leaf_->next;
      at_ = 0;
      if (leaf_ != nullptr) prefetch_line(leaf_->next);
    }
    void prev() {
      if (at_-- > 0) return;
      leaf_ = leaf_->prev;
      if (leaf_ != nullptr) at_ = leaf_->count - 1u;
    }

   private:
    const Leaf* leaf_ = nullptr;
    uint32_t at_ = 0;
  };

  OrderedIndex() = default;
  ~OrderedIndex() { clear(); }
  OrderedIndex(OrderedIndex&& other) noexcept { swap(other); }
  OrderedIndex& operator=(OrderedIndex&& other) noexcept {
    if (this != &other) {
      clear();
      swap(other);
    }
    return *this;
  }
  OrderedIndex(const OrderedIndex&) = delete;
  OrderedIndex& operator=(const OrderedIndex&) = delete;

  void swap(OrderedIndex& other) noexcept {
    std::swap(root_, other.root_);
    std::swap(first_, other.first_);
    std::swap(last_, other.last_);
    std::swap(size_, other.size_);
    std::swap(leaves_, other.leaves_);
    const uint32_t inners = inners_;
    const uint32_t height = height_;
    inners_ = other.inners_;
    height_ = other.height_;
    other.inners_ = inners & 0xffffff;
    other.height_ = height & 0xff;
  }

  uint64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  void insert(uint64_t major, uint64_t minor, Value value = Value{});

  // Removes one entry with these keys and a value == `value`. Without a TieOrder it searches all
  // entries of this (major, minor), so long runs of equal keys need a TieOrder.
  bool erase(uint64_t major, uint64_t minor, Value value = Value{});

  // Replaces the value of an entry by another of the same order (its node has moved in memory).
  // Returns false when there is no such entry.
  bool replace_value(uint64_t major, uint64_t minor, Value from, Value to);

  bool contains(uint64_t major, uint64_t minor, Value value = Value{}) const {
    return find(major, minor, value).valid();
  }
  Iterator find(uint64_t major, uint64_t minor, Value value = Value{}) const;

  // Changes the keys of the only entry in place. Returns false and does nothing if there is not
  // exactly one entry in a root leaf; the caller then erases and inserts.
  bool rekey_only(uint64_t major, uint64_t minor) {
    if (size_ != 1 || height_ != 0) return false;
    root_leaf()->keys().set(0, {major, minor, root_leaf()->first().value});
    return true;
  }

  // REQUIRES for these four: not empty().
  Entry front() const { return first_->first(); }
  Entry back() const { return last_->last(); }
  Entry pop_front();
  Entry pop_back();

  // The number of entries before this one, which need not be in the index.
  uint64_t rank(uint64_t major, uint64_t minor, Value value = Value{}) const;

  // The number of entries before the first one with (major, minor) or more, whatever their values.
  uint64_t count_below(uint64_t major, uint64_t minor = 0) const {
    return count_by(PairBefore{major, minor});
  }
  // The number of entries for which before(major, minor, value) -> bool holds. It must hold for a
  // prefix of the order.
  template <class Before>
  uint64_t count_by(Before before) const {
    uint64_t rank = 0;
    search(before, &rank);
    return rank;
  }

  // Invalid when rank >= size().
  Iterator at(uint64_t rank) const;
  Iterator begin() const { return {first_, 0}; }
  Iterator last() const {
    return last_ == nullptr ? Iterator() : Iterator(last_, last_->count - 1u);
  }

  // The first entry that is not before (major, minor, value), or (major, minor) of any value.
  Iterator lower_bound(uint64_t major, uint64_t minor, Value value) const;
  Iterator lower_bound(uint64_t major, uint64_t minor = 0) const {
    return search(PairBefore{major, minor}, nullptr);
  }
  // The first entry for which `before` does not hold (see count_by); sets its rank on request.
  template <class Before>
  Iterator lower_bound_by(Before before, uint64_t* rank = nullptr) const {
    return search(before, rank);
  }

  void clear();

  // Bytes on the heap, without the index object itself.
  size_t memory_bytes() const {
    if (height_ == 0) return root_ == nullptr ? 0 : Leaf::block_bytes(root_leaf()->capacity);
    return leaves_ * Leaf::block_bytes(Leaf::kFull) + inners_ * sizeof(Inner);
  }

  // Verifies every invariant; for tests.
  void check() const;

 private:
  // A root splits only after some 32 splits below it, so 2^64 inserts would not reach this height.
  static constexpr int kMaxHeight = 14;
  // A node with this many entries or children tries to join a neighbour. They join when the result
  // is at most three quarters full.
  static constexpr uint32_t kSparse = 16;
  static constexpr uint32_t kMaxJoined = 48;
  // A full leaf shares entries with a neighbour that has this much room instead of splitting. With
  // less room the sharing would be repeated too often before both are full.
  static constexpr uint32_t kMinSharedRoom = 8;

  struct PairBefore {
    uint64_t wanted_major;
    uint64_t wanted_minor;
    bool operator()(uint64_t major, uint64_t minor, const Value&) const {
      return major != wanted_major ? major < wanted_major : minor < wanted_minor;
    }
  };
  struct Step {
    Inner* node;
    uint32_t slot;
  };
  // The path to an entry: an inner node and a slot in it for each level, root first.
  struct Path {
    Step steps[kMaxHeight];
    Leaf* leaf;
    uint32_t at;
  };

  Leaf* root_leaf() const { return static_cast<Leaf*>(root_); }

  // For searches by a caller's predicate: prefetches all cache lines of the majors at once.
  // Searches by key do that themselves, see count_preceding.
  static void prefetch_node(const void* node) {
    const auto* bytes = static_cast<const char*>(node);
    for (int line = 0; line < 9; ++line) prefetch_line(bytes + 64 * line);
  }
  static bool before(const Entry& a, const Entry& b) {
    if (a.major != b.major) return a.major < b.major;
    if (a.minor != b.minor) return a.minor < b.minor;
    return TieOrder()(a.value, b.value);
  }

  template <class Before>
  Iterator search(Before before, uint64_t* rank) const;
  bool locate(const Entry& key, Path& path) const;
  // REQUIRES: not empty().
  void lead_to_first(Path& path) const;
  bool step_back(Path& path) const;
  static bool find_equal(const Leaf* leaf, const Entry& key, uint32_t* at, bool* may_go_on);

  void grow_root(uint32_t capacity);
  void insert_in_leaf(Path& path, const Entry& entry);
  void split_leaf(Path& path, const Entry& entry);
  bool insert_with_neighbour(Path& path, const Entry& entry);
  void add_child(Path& path, int level, void* child, uint64_t entries, Entry first, bool at_left);
  void remove_at(Path& path);
  void set_first(Path& path, int level, const Entry& first);
  void remove_child(Path& path, int level, uint32_t slot);
  void drop_leaf(Leaf* leaf);
  bool join_leaf(Path& path);
  void join_inner(Path& path, int level);
  void free_below(void* node, int height);
  uint64_t check_below(const void* node, int height, Entry* first) const;

  void* root_ = nullptr;  // A Leaf when height_ == 0, else an Inner.
  Leaf* first_ = nullptr;
  Leaf* last_ = nullptr;
  uint64_t size_ = 0;
  uint32_t leaves_ = 0;
  uint32_t inners_ : 24 = 0;
  uint32_t height_ : 8 = 0;  // The number of levels of inner nodes.
};

}  // namespace sluice

#include "engine/structures/ordered_index_inl.h"
