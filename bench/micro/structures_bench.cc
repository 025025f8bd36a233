// The measurements behind the choice of structures (ARCHITECTURE.md).
//
//   structures_bench [elements [hash_elements [ordered|hash|list]]]   default: 1000000 4000000
//
// Every round is deterministic. A figure is the best of three rounds, in nanoseconds of the
// thread's CPU time per operation. "worst" is the most expensive single insert, each taken from its
// best round; it includes the allocator's work and the page faults of fresh memory.
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "bench/micro/ordered_rivals.h"
#include "engine/structures/ordered_index.h"
#include "engine/structures/packed_list.h"
#include "engine/structures/split_map.h"

namespace sluice::bench {
namespace {

constexpr int kRounds = 3;

uint64_t mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

struct Random {
  uint64_t state;
  uint64_t next() { return mix(state += 0x9e3779b97f4a7c15); }
};

// CPU time of this thread, which other load on the machine affects as little as possible.
double now_ns() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

// Stores results that nobody reads, so that the compiler does not remove the computation.
uint64_t g_sink = 0;

template <class Fn>
double ns_per_op(uint64_t operations, Fn fn) {
  const double start = now_ns();
  for (uint64_t i = 0; i < operations; ++i) fn(i);
  return (now_ns() - start) / static_cast<double>(operations);
}

// --- ordered structures
// ---------------------------------------------------------------------------

class Tree {
 public:
  static constexpr bool kHasRank = true;
  void insert(const RivalEntry& e) { index_.insert(e.major, e.minor, e.id); }
  RivalEntry pop_front() {
    const auto e = index_.pop_front();
    return {e.major, e.minor, e.value};
  }
  void move(const RivalEntry& from, const RivalEntry& to) {
    index_.erase(from.major, from.minor, from.id);
    insert(to);
  }
  uint64_t rank(const RivalEntry& e) { return index_.rank(e.major, e.minor, e.id); }
  size_t memory_bytes() const { return index_.memory_bytes(); }

 private:
  struct ById {
    bool operator()(uint32_t a, uint32_t b) const { return a < b; }
  };
  OrderedIndex<uint32_t, ById> index_;
};

class Heap : public IndexedHeap {
 public:
  static constexpr bool kHasRank = false;
  uint64_t rank(const RivalEntry&) { return 0; }
};

class Skip : public SkipList {
 public:
  static constexpr bool kHasRank = true;
};

struct OrderedFigures {
  double push_random, pop_push, fifo, bands, rank, move, bytes_random, bytes_fifo;
};

void keep_least(double& best, double value) { best = best == 0 ? value : std::min(best, value); }

template <class Structure>
void measure_random_keys(uint32_t n, OrderedFigures& best) {
  const uint64_t operations = std::min<uint64_t>(n, 1000000);
  Random random{n};
  Structure structure;
  std::vector<RivalEntry> entries(n);
  for (uint32_t id = 0; id < n; ++id) entries[id] = {random.next() >> 24, id, id};
  keep_least(best.push_random, ns_per_op(n, [&](uint64_t i) { structure.insert(entries[i]); }));
  best.bytes_random = static_cast<double>(structure.memory_bytes()) / n;
  if (Structure::kHasRank) {
    keep_least(best.rank, ns_per_op(operations, [&](uint64_t) {
                 g_sink += structure.rank(entries[random.next() % n]);
               }));
  }
  keep_least(best.move, ns_per_op(operations, [&](uint64_t) {
               RivalEntry& entry = entries[random.next() % n];
               const RivalEntry from = entry;
               entry.major = random.next() >> 24;
               structure.move(from, entry);
             }));
  keep_least(best.pop_push, ns_per_op(operations, [&](uint64_t) {
               RivalEntry entry = structure.pop_front();
               // As in a delay queue: what is pushed lies somewhere after what was popped.
               entry.major += random.next() >> 24;
               structure.insert(entry);
             }));
}

// Time-ordered keys in `bands` priorities: one of them is plain FIFO.
template <class Structure>
double measure_fifo(uint32_t n, uint32_t bands, double* bytes) {
  const uint64_t operations = std::max<uint64_t>(n, 1000000);
  Random random{7};
  Structure structure;
  uint64_t time = 0;
  for (uint32_t id = 0; id < n; ++id) structure.insert({random.next() % bands, ++time, id});
  if (bytes != nullptr) *bytes = static_cast<double>(structure.memory_bytes()) / n;
  return ns_per_op(operations, [&](uint64_t) {
    RivalEntry entry = structure.pop_front();
    entry.major = random.next() % bands;
    entry.minor = ++time;
    structure.insert(entry);
  });
}

template <class Structure>
void ordered_row(const char* name, uint32_t n) {
  OrderedFigures best{};
  for (int round = 0; round < kRounds; ++round) {
    measure_random_keys<Structure>(n, best);
    keep_least(best.fifo, measure_fifo<Structure>(n, 1, &best.bytes_fifo));
    keep_least(best.bands, measure_fifo<Structure>(n, 5, nullptr));
  }
  char rank[16] = "-";
  if (Structure::kHasRank) std::snprintf(rank, sizeof(rank), "%.0f", best.rank);
  std::printf("| %-18s | %8u | %6.0f | %8.0f | %6.0f | %7.0f | %6s | %8.0f | %6.1f | %6.1f |\n",
              name, n, best.push_random, best.pop_push, best.fifo, best.bands, rank, best.move,
              best.bytes_random, best.bytes_fifo);
}

void ordered_tables(uint32_t n) {
  std::printf("Ordered structures, ns an operation; a FIFO pop+push counts as one.\n\n");
  std::printf(
      "| structure          | elements |   push | pop+push |   FIFO | 5 bands |   rank |"
      " new prio | B/rand | B/FIFO |\n");
  std::printf(
      "|--------------------|----------|--------|----------|--------|---------|--------|"
      "----------|--------|--------|\n");
  for (const uint32_t size : {uint32_t{100}, uint32_t{10000}, n}) {
    ordered_row<Tree>("counted B+tree", size);
    ordered_row<Heap>("4-ary heap, index", size);
    ordered_row<Skip>("skip list, spans", size);
  }
}

// --- hash
// -----------------------------------------------------------------------------------------

struct Item {
  uint64_t number;
  uint64_t payload;
};

struct ItemTraits {
  static constexpr size_t kMaxOrdered = 128;
  static Bytes key(const Item* item) {
    return {reinterpret_cast<const char*>(&item->number), sizeof(item->number)};
  }
  static uint64_t hash(Bytes key) {
    uint64_t number = 0;
    std::memcpy(&number, key.data(), sizeof(number));
    return mix(number + 0x9e3779b97f4a7c15);
  }
};

// One flat open-addressing table that doubles: what SplitMap avoids.
class FlatTable {
 public:
  void insert(Item* item, uint64_t hash) {
    if (size_ * 8 >= slots_.size() * 7) grow();
    put(item, hash);
    ++size_;
  }
  Item* find(Bytes key, uint64_t hash) const {
    const size_t mask = slots_.size() - 1;
    for (size_t at = hash & mask; slots_[at] != 0; at = (at + 1) & mask) {
      if (slots_[at] >> 48 != hash >> 48) continue;
      auto* item = reinterpret_cast<Item*>(slots_[at] & 0xffffffffffff);
      if (ItemTraits::key(item) == key) return item;
    }
    return nullptr;
  }
  size_t memory_bytes() const { return slots_.capacity() * 8; }

 private:
  void put(Item* item, uint64_t hash) {
    const size_t mask = slots_.size() - 1;
    size_t at = hash & mask;
    while (slots_[at] != 0) at = (at + 1) & mask;
    slots_[at] = reinterpret_cast<uintptr_t>(item) | hash >> 48 << 48;
  }
  void grow() {
    std::vector<uint64_t> old(std::max<size_t>(16, slots_.size() * 2));
    old.swap(slots_);
    for (const uint64_t slot : old) {
      if (slot == 0) continue;
      auto* item = reinterpret_cast<Item*>(slot & 0xffffffffffff);
      put(item, ItemTraits::hash(ItemTraits::key(item)));
    }
  }
  std::vector<uint64_t> slots_;
  size_t size_ = 0;
};

using Split = SplitMap<Item, ItemTraits>;

uint64_t hash_of(const Item& item) { return ItemTraits::hash(ItemTraits::key(&item)); }

template <class Map>
void hash_row(const char* name, uint32_t n, std::vector<Item>& items) {
  double insert = 0;
  double hit = 0;
  double miss = 0;
  std::vector<float> least(n, 1e12f);  // The i-th insert does the same in each round.
  double bytes = 0;
  const uint64_t lookups = std::max<uint64_t>(n, 1000000);
  for (int round = 0; round < kRounds; ++round) {
    Random random{5};
    Map map;
    keep_least(insert, ns_per_op(n, [&](uint64_t i) { map.insert(&items[i], hash_of(items[i])); }));
    bytes = static_cast<double>(map.memory_bytes()) / n;
    keep_least(hit, ns_per_op(lookups, [&](uint64_t) {
                 const Item& item = items[random.next() % n];
                 g_sink += map.find(ItemTraits::key(&item), hash_of(item))->payload;
               }));
    keep_least(miss, ns_per_op(lookups, [&](uint64_t i) {
                 const Item absent{~i, 0};
                 g_sink += map.find(ItemTraits::key(&absent), hash_of(absent)) != nullptr;
               }));
    Map timed;
    double before = now_ns();
    for (uint32_t i = 0; i < n; ++i) {
      timed.insert(&items[i], hash_of(items[i]));
      const double after = now_ns();
      least[i] = std::min(least[i], static_cast<float>(after - before));
      before = after;
    }
  }
  const double worst_us = *std::max_element(least.begin(), least.end()) / 1000;
  std::printf("| %-18s | %8u | %6.0f | %6.0f | %6.0f | %9.1f | %6.1f |\n", name, n, insert, hit,
              miss, worst_us, bytes);
}

void erase_row(uint32_t n, std::vector<Item>& items) {
  double erase = 0;
  double scan = 0;
  double pick = 0;
  for (int round = 0; round < kRounds; ++round) {
    Split map;
    Random random{9};
    for (uint32_t i = 0; i < n; ++i) map.insert(&items[i], hash_of(items[i]));
    keep_least(pick,
               ns_per_op(200000, [&](uint64_t) { g_sink += map.random(random.next())->payload; }));
    uint64_t visited = 0;
    const double start = now_ns();
    uint64_t cursor = 0;
    do {
      cursor = map.scan(cursor, 10, [&](Item* item) { visited += 1 + item->payload; });
    } while (cursor != 0);
    keep_least(scan, (now_ns() - start) / static_cast<double>(std::max<uint64_t>(visited, 1)));
    keep_least(erase, ns_per_op(n, [&](uint64_t i) {
                 g_sink += map.erase_node(&items[i], hash_of(items[i]));
               }));
  }
  std::printf("SplitMap of %u: erase %.0f ns, random %.0f ns, scan (COUNT 10) %.0f ns an element\n",
              n, erase, pick, scan);
}

void hash_tables(uint32_t n) {
  std::printf("\nHash of nodes, ns an operation, worst insert in microseconds.\n\n");
  std::printf(
      "| structure          | elements | insert |    hit |   miss | worst, us |  B/el. |\n");
  std::printf(
      "|--------------------|----------|--------|--------|--------|-----------|--------|\n");
  std::vector<Item> items(n);
  for (uint32_t i = 0; i < n; ++i) items[i] = {i, 0};
  const std::vector<uint32_t> sizes = {100, 1000, 100000, n};
  for (const uint32_t size : sizes) {
    if (size > n) continue;
    hash_row<FlatTable>("one flat table", size, items);
    hash_row<Split>("SplitMap", size, items);
  }
  std::printf("\n");
  for (const uint32_t size : sizes) {
    if (size <= n) erase_row(size, items);
  }
}

// --- list
// -----------------------------------------------------------------------------------------

template <class Push, class Pop>
void list_row(const char* name, uint32_t n, Push push, Pop pop,
              const std::function<size_t()>& bytes) {
  double push_ns = 0;
  double pop_ns = 0;
  double per_element = 0;
  for (int round = 0; round < kRounds; ++round) {
    keep_least(push_ns, ns_per_op(n, push));
    per_element = static_cast<double>(bytes()) / n;
    keep_least(pop_ns, ns_per_op(n, pop));
  }
  std::printf("| %-32s | %6.1f | %6.1f | %6.1f |\n", name, push_ns, pop_ns, per_element);
}

void list_tables(uint32_t n) {
  std::printf("\nLists of %u elements, ns an operation.\n\n", n);
  std::printf("| list                             |   push |    pop |  B/el. |\n");
  std::printf("|----------------------------------|--------|--------|--------|\n");
  for (const size_t size : {3u, 16u, 100u, 300u}) {
    const std::string value(size, 'x');
    PackedList list;
    const auto bytes = [&list] { return list.memory_bytes(); };
    const auto take = [](Bytes view) { g_sink += view.size(); };
    const std::string name = "PackedList, " + std::to_string(size) + " B, ";
    list_row((name + "LPUSH LPOP").c_str(), n, [&](uint64_t) { list.push_front(value); },
             [&](uint64_t) { list.pop_front(take); }, bytes);
    list_row((name + "RPUSH LPOP").c_str(), n, [&](uint64_t) { list.push_back(value); },
             [&](uint64_t) { list.pop_front(take); }, bytes);
    std::deque<std::string> deque;
    list_row(("std::deque<string>, " + std::to_string(size) + " B").c_str(), n,
             [&](uint64_t) { deque.push_back(value); },
             [&](uint64_t) {
               g_sink += deque.front().size();
               deque.pop_front();
             },
             [&] { return deque.size() * (sizeof(std::string) + (size > 15 ? size + 1 : 0)); });
  }
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  const auto number = [&](int index, unsigned long fallback) {
    return static_cast<uint32_t>(argc > index ? std::strtoul(argv[index], nullptr, 10) : fallback);
  };
  const uint32_t elements = number(1, 1000000);
  const uint32_t hash_elements = number(2, 4000000);
  if (elements < 100 || hash_elements < 100) {
    std::fprintf(stderr,
                 "usage: structures_bench [elements >= 100 [hash_elements >= 100 [section]]]\n");
    return 1;
  }
  const std::string only = argc > 3 ? argv[3] : "";
  if (only.empty() || only == "ordered") sluice::bench::ordered_tables(elements);
  if (only.empty() || only == "hash") sluice::bench::hash_tables(hash_elements);
  if (only.empty() || only == "list") sluice::bench::list_tables(elements);
  std::printf("\n(checksum %llu)\n", static_cast<unsigned long long>(sluice::bench::g_sink));
  return 0;
}
