// The nodes of an OrderedIndex (ordered_index.h) and the searches inside one node.
//
// Threads and ownership: as the index that owns them. Keys are kept as one array for each field
// (major, minor, value), because a search mostly reads only majors and so touches fewer cache
// lines.
//
// Invariants:
// 1. A leaf holds entries [begin, begin + count) of its arrays: taking from the front changes a
//    number instead of moving 64 entries, and an insert moves the shorter side.
// 2. An inner node's key i (i >= 1) is exactly the first entry below child i. Key 0 is never
//    read: entries smaller than key 1 lie below child 0. Keys must be exact, because a value may
//    be a pointer that dangles after its entry is erased.
// 3. counts[i] is the number of entries below child i.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "engine/base/check.h"

namespace sluice {

struct NoValue {
  bool operator==(const NoValue&) const = default;
};

// The tie order of an index that leaves entries with equal major and minor unordered.
struct NoTie {
  template <class Value>
  bool operator()(const Value&, const Value&) const {
    return false;
  }
};

// The number of leading elements of a sorted array for which `precedes` holds: whole blocks of
// eight are compared by their last elements, then the elements of the block where the prefix ends.
// No branch depends on a key (half of a binary search's branches are mispredicted), and the cache
// lines are fetched in parallel.
template <class Precedes>
inline uint32_t count_preceding(const uint64_t* keys, uint32_t n, Precedes precedes) {
  uint32_t blocks = 0;
  for (uint32_t i = 7; i < n; i += 8) blocks += precedes(keys[i]);
  const uint64_t* block = keys + 8 * blocks;
  const uint32_t rest = n - 8 * blocks;
  uint32_t within = 0;
  if (rest >= 7) {
#pragma GCC unroll 7
    for (uint32_t i = 0; i < 7; ++i) within += precedes(block[i]);
  } else {
    for (uint32_t i = 0; i < rest; ++i) within += precedes(block[i]);
  }
  return 8 * blocks + within;
}

inline uint32_t count_below(const uint64_t* keys, uint32_t n, uint64_t key) {
  return count_preceding(keys, n, [key](uint64_t other) { return other < key; });
}

inline uint32_t count_up_to(const uint64_t* keys, uint32_t n, uint64_t key) {
  return count_preceding(keys, n, [key](uint64_t other) { return other <= key; });
}

template <class Value>
struct OrderedEntry {
  uint64_t major;
  uint64_t minor;
  [[no_unique_address]] Value value;
};

// Sorted keys as three arrays: part of a leaf or of an inner node.
template <class Value, class TieOrder>
struct OrderedKeys {
  static constexpr bool kHasValue = !std::is_empty_v<Value>;
  using Entry = OrderedEntry<Value>;
  struct Span {
    uint32_t begin;
    uint32_t end;
  };

  uint64_t* majors;
  uint64_t* minors;
  Value* values;

  Entry get(uint32_t i) const {
    if constexpr (kHasValue) {
      return Entry{majors[i], minors[i], values[i]};
    } else {
      return Entry{majors[i], minors[i], Value{}};
    }
  }
  void set(uint32_t i, const Entry& entry) {
    majors[i] = entry.major;
    minors[i] = entry.minor;
    if constexpr (kHasValue) values[i] = entry.value;
  }
  // The arrays may overlap.
  void move(uint32_t to, uint32_t from, uint32_t n) { copy(to, *this, from, n); }
  void copy(uint32_t to, const OrderedKeys& other, uint32_t from, uint32_t n) {
    if (n == 0) return;  // at either end, where most inserts and erases happen
    std::memmove(majors + to, other.majors + from, n * sizeof(uint64_t));
    std::memmove(minors + to, other.minors + from, n * sizeof(uint64_t));
    if constexpr (kHasValue) {
      std::memmove(static_cast<void*>(values + to), other.values + from, n * sizeof(Value));
    }
  }

  // The range of the keys equal to (major, minor) among the first n. It is empty if there are none,
  // and then marks where they would be inserted.
  Span equal_pairs(uint32_t n, uint64_t major, uint64_t minor) const {
    const uint32_t run_end = count_up_to(majors, n, major);
    if (run_end == 0 || majors[run_end - 1] != major) return {run_end, run_end};
    uint32_t run_begin = run_end - 1;  // Most majors are unique, or all of them are equal.
    if (run_begin > 0 && majors[run_begin - 1] == major) {
      run_begin = majors[0] == major ? 0 : count_below(majors, run_begin, major);
    }
    const uint32_t end = run_begin + count_up_to(minors + run_begin, run_end - run_begin, minor);
    if (end == run_begin || minors[end - 1] != minor) return {end, end};
    if (end - 1 == run_begin || minors[end - 2] != minor) return {end - 1, end};
    return {run_begin + count_below(minors + run_begin, end - 1 - run_begin, minor), end};
  }

  // The same with the tie order: the range of the keys that are neither before nor after `key`.
  Span equal(uint32_t n, const Entry& key) const {
    Span span = equal_pairs(n, key.major, key.minor);
    if constexpr (kHasValue && !std::is_same_v<TieOrder, NoTie>) {
      // An identical value needs no comparison, which would follow pointers.
      if (span.end - span.begin == 1 && values[span.begin] == key.value) return span;
      const Value* first = values + span.begin;
      const Value* last = values + span.end;
      const auto range = std::equal_range(first, last, key.value, TieOrder());
      span = {static_cast<uint32_t>(range.first - values),
              static_cast<uint32_t>(range.second - values)};
    }
    return span;
  }
};

template <class Value, class TieOrder>
struct OrderedLeaf {
  using Keys = OrderedKeys<Value, TieOrder>;
  using Entry = OrderedEntry<Value>;
  static constexpr size_t kEntryBytes = 16 + (Keys::kHasValue ? sizeof(Value) : 0);

  OrderedLeaf* prev;
  OrderedLeaf* next;
  uint16_t capacity;
  uint16_t begin;
  uint16_t count;
  uint8_t after_insert;  // The array index after the newest entry: a hint for the next split.
  uint8_t sequence;      // How many of the newest entries were each inserted after the one before.

  static constexpr size_t kHeaderBytes = 24;
  // Nearly 64 entries: as many as fill a size class of the allocator (1024, 1280, 1536, ... bytes).
  static constexpr uint32_t kFull = static_cast<uint32_t>(
      ((kHeaderBytes + 64 * kEntryBytes) / 256 * 256 - kHeaderBytes) / kEntryBytes);

  static_assert(kFull <= UINT8_MAX);  // See after_insert.

  static size_t block_bytes(uint32_t entries) { return kHeaderBytes + entries * kEntryBytes; }

  static OrderedLeaf* create(uint32_t entries) {
    auto* leaf = static_cast<OrderedLeaf*>(std::malloc(block_bytes(entries)));
    CHECK(leaf != nullptr);
    leaf->prev = leaf->next = nullptr;
    leaf->capacity = static_cast<uint16_t>(entries);
    leaf->begin = leaf->count = 0;
    leaf->after_insert = leaf->sequence = 0;
    return leaf;
  }

  // The entries in use; index 0 is the first one.
  Keys keys() const {
    auto* majors = reinterpret_cast<uint64_t*>(const_cast<OrderedLeaf*>(this) + 1);
    uint64_t* minors = majors + capacity;
    return {majors + begin, minors + begin, reinterpret_cast<Value*>(minors + capacity) + begin};
  }
  Entry entry(uint32_t i) const { return keys().get(i); }
  Entry first() const { return entry(0); }
  Entry last() const { return entry(count - 1u); }

  // Moves the entries to another place in the arrays.
  void slide(uint32_t to) {
    Keys from = keys();
    after_insert = static_cast<uint8_t>(after_insert + to - begin);
    begin = static_cast<uint16_t>(to);
    keys().copy(0, from, 0, count);
  }

  // REQUIRES: count < capacity.
  void insert(uint32_t at, const Entry& entry) {
    sequence = begin + at != after_insert ? 0 : sequence < UINT8_MAX ? sequence + 1 : UINT8_MAX;
    const bool room_behind = begin + count < capacity;
    if (at == count && count > 0) {
      // Sliding all the way pays for the appends that follow; sliding one step would be paid for
      // each of them.
      if (!room_behind) slide(0);
    } else if (begin > 0 && (at < count / 2u || !room_behind)) {
      --begin;
      keys().move(0, 1, at);
    } else {
      if (at == 0 && begin == 0 && count > 1) {
        slide((capacity - count + 1u) / 2);
        --begin;
      } else {
        keys().move(at + 1, at, count - at);
      }
    }
    ++count;
    after_insert = static_cast<uint8_t>(begin + at + 1);
    keys().set(at, entry);
  }

  // Whether an insert here continues a run. A few in a row happen by chance where entries arrive in
  // random order.
  bool in_sequence(uint32_t at) const { return begin + at == after_insert && sequence >= 3; }

  void remove(uint32_t at) {
    if (at < count / 2u) {
      keys().move(1, 0, at);
      ++begin;
    } else {
      keys().move(at, at + 1, count - at - 1);
    }
    --count;
    if (count == 0) begin = 0;
  }

  // Moves the entries [from, count) of another leaf to the end of this one.
  void take_tail(OrderedLeaf* other, uint32_t from) {
    const uint32_t n = other->count - from;
    if (begin + count + n > capacity) slide(0);
    keys().copy(count, other->keys(), from, n);
    count = static_cast<uint16_t>(count + n);
    other->count = static_cast<uint16_t>(from);
  }

  // Moves the first n entries of the leaf after this one to its end.
  void take_head(OrderedLeaf* other, uint32_t n) {
    if (begin + count + n > capacity) slide(0);
    keys().copy(count, other->keys(), 0, n);
    count = static_cast<uint16_t>(count + n);
    other->begin = static_cast<uint16_t>(other->begin + n);
    other->count = static_cast<uint16_t>(other->count - n);
  }

  // Moves the last n entries of the leaf before this one to its front.
  void take_tail_in_front(OrderedLeaf* other, uint32_t n) {
    if (begin < n) slide(capacity - count);
    begin = static_cast<uint16_t>(begin - n);
    count = static_cast<uint16_t>(count + n);
    other->count = static_cast<uint16_t>(other->count - n);
    keys().copy(0, other->keys(), other->count, n);
  }
};

template <class Value, class TieOrder>
struct OrderedInner {
  using Keys = OrderedKeys<Value, TieOrder>;
  using Entry = OrderedEntry<Value>;
  static constexpr uint32_t kFull = 64;

  uint32_t count;
  uint64_t majors[kFull];
  uint64_t minors[kFull];
  uint32_t counts[kFull];
  void* children[kFull];
  Value values[Keys::kHasValue ? kFull : 1];

  static OrderedInner* create() {
    auto* inner = static_cast<OrderedInner*>(std::malloc(sizeof(OrderedInner)));
    CHECK(inner != nullptr);
    inner->count = 0;
    return inner;
  }

  Keys keys() const {
    auto* self = const_cast<OrderedInner*>(this);
    return {self->majors, self->minors, self->values};
  }
  // The keys that are read: those of children from 1 on.
  Keys separators() const {
    auto* self = const_cast<OrderedInner*>(this);
    return {self->majors + 1, self->minors + 1, self->values + (Keys::kHasValue ? 1 : 0)};
  }

  // The number of entries below the first n children.
  uint64_t entries_before(uint32_t n) const {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; ++i) sum += counts[i];
    return sum;
  }

  // REQUIRES: count < kFull.
  void insert(uint32_t at, void* child, uint64_t entries, const Entry& first) {
    const uint32_t tail = count - at;
    std::memmove(children + at + 1, children + at, tail * sizeof(children[0]));
    std::memmove(counts + at + 1, counts + at, tail * sizeof(counts[0]));
    keys().move(at + 1, at, tail);
    children[at] = child;
    counts[at] = static_cast<uint32_t>(entries);
    keys().set(at, first);
    ++count;
  }

  void remove(uint32_t at) {
    const uint32_t tail = count - at - 1;
    std::memmove(children + at, children + at + 1, tail * sizeof(children[0]));
    std::memmove(counts + at, counts + at + 1, tail * sizeof(counts[0]));
    keys().move(at, at + 1, tail);
    --count;
  }

  // Moves the children [from, count) of another node to the end of this one. Key `from` of the
  // other node must be exact.
  void take_tail(OrderedInner* other, uint32_t from) {
    const uint32_t n = other->count - from;
    std::memcpy(children + count, other->children + from, n * sizeof(children[0]));
    std::memcpy(counts + count, other->counts + from, n * sizeof(counts[0]));
    keys().copy(count, other->keys(), from, n);
    count += n;
    other->count = from;
  }
};

}  // namespace sluice
