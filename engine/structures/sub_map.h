// SubMap: one bounded table of a SplitMap (split_map.h). It stores slots of 8 bytes, each the
// address of a node and a tag of 19 hash bits, and does not access the nodes.
//
// Threads: the owner of the SplitMap. Ownership: a SubMap is one malloc block (header and slots),
// which the SplitMap creates and destroys; nodes are never owned.
//
// Invariants:
// 1. All elements of a SubMap agree in the first `depth` bits of their hash.
// 2. The tag is hash bits [base, base + 19), counted from the top, with base <= depth <= base + 5.
//    So a split reads the next hash bit from the tag and does not touch the nodes; the tags are
//    recomputed from the nodes only when depth would exceed base + 5.
// 3. Slots are sorted by tag, with gaps. An element lies at or after its home, and no slot between
//    its home and itself is empty. home() grows with the tag, so a search ends at the first
//    greater tag and a walk over the slots is a walk in hash order.
// 4. The slot after the last one is a sentinel and always empty. An empty slot is all ones: it
//    sorts after every tag, so that one comparison ends a search.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "engine/base/check.h"

namespace sluice {

struct SubMap {
  uint32_t count;
  uint32_t total;  // Slots, without the sentinel.
  uint32_t main;   // Homes lie in [0, main); later slots take the overflow of the last ones.
  uint8_t depth;
  uint8_t base;

  static constexpr int kTagBits = 19;
  // A node is aligned to 8 bytes and lives below 2^48, so 45 bits are enough for its address.
  static constexpr int kAddressBits = 64 - kTagBits;
  static constexpr uint64_t kTagMask = (uint64_t{1} << kTagBits) - 1;
  static constexpr uint64_t kAddressMask = (uint64_t{1} << kAddressBits) - 1;
  static constexpr uint64_t kEmpty = ~uint64_t{0};
  static constexpr int kMaxTagAge = 5;  // of depth - base: the tag has five spare bits
  static constexpr int kMaxDepth = 40;

  static uint64_t tag_of(uint64_t hash, int tag_base) { return (hash << tag_base) >> kAddressBits; }
  static uint64_t make_slot(const void* node, uint64_t tag) {
    const auto address = reinterpret_cast<uintptr_t>(node);
    CHECK((address & 7) == 0 && address >> 48 == 0);
    return tag << kAddressBits | address >> 3;
  }
  static uint64_t slot_tag(uint64_t slot) { return slot >> kAddressBits; }
  static void* slot_address(uint64_t slot) {
    return reinterpret_cast<void*>((slot & kAddressMask) << 3);
  }
  static bool tag_less(uint64_t a, uint64_t b) { return slot_tag(a) < slot_tag(b); }

  // Blocks have sizes that allocators with size classes serve without waste.
  static constexpr uint32_t kBlockBytes[] = {128,  192,  256,  384,  512,  640,  768, 1024,
                                             1280, 1536, 2048, 2560, 3072, 3584, 4096};
  static constexpr uint32_t kFullBlockBytes = 4096;
  static constexpr uint32_t kReadAhead = 8;  // The least number of slots that skip_below reads.
  static constexpr uint32_t kMinTotal = (128 - 16) / 8 - 1;
  static constexpr uint32_t kFullTotal = (kFullBlockBytes - 16) / 8 - 1;

  static uint32_t max_count(uint32_t total) { return total / 16 * 13 + total % 16 * 13 / 16; }

  uint64_t* slots() { return reinterpret_cast<uint64_t*>(this + 1); }
  const uint64_t* slots() const { return reinterpret_cast<const uint64_t*>(this + 1); }
  size_t block_bytes() const { return sizeof(SubMap) + (size_t{total} + 1) * 8; }
  bool is_full_size() const { return total >= kFullTotal; }

  static uint32_t home(uint64_t tag, int age, uint32_t homes) {
    return static_cast<uint32_t>((((tag << age) & kTagMask) * homes) >> kTagBits);
  }
  uint32_t home(uint64_t tag) const { return home(tag, depth - base, main); }

  // The first slot from here on whose tag is not below `tag`, or the empty one that ends the run.
  // Comparing eight slots without a branch is cheaper than one misprediction of where the run ends;
  // slots after an empty one have greater tags anyway.
  const uint64_t* skip_below(const uint64_t* slot, uint64_t tag) const {
    const uint64_t low = tag << kAddressBits;
    uint32_t below = 0;
#pragma GCC unroll 8
    for (uint32_t i = 0; i < kReadAhead; ++i) below += slot[i] < low;
    slot += below;
    return below == kReadAhead && *slot < low ? skip_far(slot, low) : slot;
  }
  // Runs are long where elements arrive in the order of their hashes, as from a checkpoint: all of
  // them crowd into the homes of the lowest tags until the table splits. From the home on, lower
  // slots come before all others (invariants 3 and 4), so a binary search finds their end.
  [[gnu::noinline]] const uint64_t* skip_far(const uint64_t* slot, uint64_t low) const {
    const uint64_t* end = slots() + total;
    ptrdiff_t step = kReadAhead;
    for (; end - slot > step && slot[step] < low; step *= 2) slot += step;
    return std::partition_point(slot, slot + std::min(step, end - slot),
                                [low](uint64_t s) { return s < low; });
  }
  const uint64_t* first(uint64_t tag) const { return skip_below(slots() + home(tag), tag); }
  uint64_t* first(uint64_t tag) {
    return const_cast<uint64_t*>(static_cast<const SubMap*>(this)->first(tag));
  }

  // Puts the slot in its place. Returns false and changes nothing if the run of occupied slots
  // reaches the end of the table.
  bool put(uint64_t slot) {
    uint64_t* place = first(slot_tag(slot));
    uint64_t* gap = place;
    while (*gap != kEmpty) ++gap;
    if (gap == slots() + total) return false;
    std::memmove(place + 1, place, static_cast<size_t>(gap - place) * 8);
    *place = slot;
    ++count;
    return true;
  }

  // Empties an occupied slot and moves those after it back, so that no search meets a gap.
  void remove(uint64_t* slot) {
    uint64_t* end = slot + 1;
    while (*end != kEmpty && slots() + home(slot_tag(*end)) < end) ++end;
    std::memmove(slot, slot + 1, static_cast<size_t>(end - slot - 1) * 8);
    end[-1] = kEmpty;
    --count;
  }

  // Moves all elements to the front of the slots, in order. Afterwards the table may only be read
  // as an array and destroyed.
  uint64_t* pack() {
    uint64_t* out = slots();
    for (uint32_t i = 0; i < total; ++i) {
      if (slots()[i] != kEmpty) *out++ = slots()[i];
    }
    return slots();
  }

  // Makes a table of `n` sorted slots with room for at least `room` elements.
  static SubMap* create(const uint64_t* sorted, uint32_t n, uint32_t room, int depth, int base) {
    CHECK(room >= n && base <= depth && depth - base <= kMaxTagAge);
    SubMap* map = allocate(room);
    map->depth = static_cast<uint8_t>(depth);
    map->base = static_cast<uint8_t>(base);
    map->count = n;
    // Slots at the end take the overflow of the last homes. A crowd in one place (a bad hash) may
    // need more of them; with a single home the table is a plain sorted array and always fits.
    const uint32_t spill = std::max<uint32_t>(kReadAhead - 1, map->total / 16);
    for (uint32_t main : {map->total - spill, map->total / 2, uint32_t{1}}) {
      map->main = main;
      if (map->place(sorted, n)) return map;
    }
    CHECK(false);
    return nullptr;
  }

  static void destroy(SubMap* map) { std::free(map); }

 private:
  static SubMap* allocate(uint32_t room) {
    size_t bytes = 0;
    for (uint32_t candidate : kBlockBytes) {
      bytes = candidate;
      if (max_count((candidate - 16) / 8 - 1) >= room) break;
    }
    while (max_count(static_cast<uint32_t>((bytes - 16) / 8 - 1)) < room) bytes *= 2;
    void* block = std::malloc(bytes);
    CHECK(block != nullptr);
    auto* map = static_cast<SubMap*>(block);
    map->total = static_cast<uint32_t>((bytes - sizeof(SubMap)) / 8 - 1);
    return map;
  }

  bool place(const uint64_t* sorted, uint32_t n) {
    std::memset(slots(), 0xff, (size_t{total} + 1) * 8);
    uint32_t next = 0;
    for (uint32_t i = 0; i < n; ++i) {
      const uint32_t at = std::max(next, home(slot_tag(sorted[i])));
      if (at >= total) return false;
      slots()[at] = sorted[i];
      next = at + 1;
    }
    return true;
  }
};
static_assert(sizeof(SubMap) == 16);

}  // namespace sluice
