// SplitMap compared with a naive model, and the guarantees of scan().
#include "engine/structures/split_map.h"

#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/support/seeds.h"
#include "tests/support/test.h"

namespace {

using sluice::Bytes;
using sluice::SplitMap;

uint64_t mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

struct Item {
  std::string name;
};

template <int kQuality>
struct ItemTraits {
  static constexpr size_t kMaxOrdered = 128;
  static Bytes key(const Item* item) { return item->name; }
  static uint64_t hash(Bytes key) {
    uint64_t h = 0x1234567;
    for (const char c : key) h = mix(h * 31 + static_cast<unsigned char>(c));
    if (kQuality == 0) return 42;                            // Everything collides.
    if (kQuality == 1) return h & 0xff00ff0000000fff;        // Crowds in few places.
    if (kQuality == 2) return 0xffffffff00000000 | h >> 40;  // Everything at the very end.
    return h;
  }
};

using sluice::testing::use_seed;

std::vector<uint64_t> seeds(uint64_t count) { return sluice::testing::seeds(count, 7919); }

template <int kQuality>
class Model {
 public:
  using Traits = ItemTraits<kQuality>;
  using Map = SplitMap<Item, Traits>;

  void insert(const std::string& name) {
    auto& item = items[name];
    if (item != nullptr) {
      CHECK(map.find(name, Traits::hash(name)) == item.get());
      return;
    }
    CHECK(map.find(name, Traits::hash(name)) == nullptr);
    item = std::make_unique<Item>(Item{name});
    map.insert(item.get(), Traits::hash(name));
    order.push_back(name);
  }
  void erase(const std::string& name, bool by_node) {
    const uint64_t hash = Traits::hash(name);
    auto it = items.find(name);
    if (it == items.end()) {
      CHECK(map.erase(name, hash) == nullptr);
      return;
    }
    if (by_node) {
      CHECK(map.erase_node(it->second.get(), hash));
      CHECK_FALSE(map.erase_node(it->second.get(), hash));
    } else {
      CHECK(map.erase(name, hash) == it->second.get());
    }
    items.erase(it);
    order.erase(std::find(order.begin(), order.end(), name));
  }
  void replace(const std::string& name) {
    auto it = items.find(name);
    if (it == items.end()) return;
    auto fresh = std::make_unique<Item>(Item{name});
    map.replace(it->second.get(), fresh.get(), Traits::hash(name));
    it->second = std::move(fresh);
  }
  void check() const {
    map.check();
    CHECK(map.size() == items.size());
    std::vector<std::string> walked;
    map.for_each([&](Item* item) { walked.push_back(item->name); });
    if (map.is_ordered()) {
      CHECK(walked == order);
    } else {
      std::vector<std::string> sorted = order;
      std::sort(sorted.begin(), sorted.end());
      std::sort(walked.begin(), walked.end());
      CHECK(walked == sorted);
    }
    for (const auto& [name, item] : items) {
      CHECK(map.find(name, Traits::hash(name)) == item.get());
    }
  }

  Map map;
  std::map<std::string, std::unique_ptr<Item>> items;
  std::vector<std::string> order;
};

template <int kQuality>
void run_against_model(uint64_t seed, int operations, int keys) {
  use_seed(seed);
  INFO("seed ", seed, " quality ", kQuality, " keys ", keys);
  std::mt19937_64 random(seed);
  Model<kQuality> model;
  bool growing = true;
  for (int i = 0; i < operations; ++i) {
    if (random() % (operations / 6 + 1) == 0) growing = !growing;
    const std::string name = "k" + std::to_string(random() % keys);
    const uint64_t dice = random() % 10;
    if (dice < (growing ? 7u : 2u)) {
      model.insert(name);
    } else if (dice < 9) {
      model.erase(name, dice == 8);
    } else {
      model.replace(name);
    }
    if (random() % (operations / 20 + 1) == 0) model.check();
  }
  model.check();
  while (!model.order.empty()) model.erase(model.order.back(), false);
  model.check();
  CHECK(model.map.memory_bytes() < 800);  // Unused memory has been freed.
}

}  // namespace

TEST_CASE("a random history leaves the same elements as a std::map") {
  for (const uint64_t seed : seeds(3)) {
    run_against_model<3>(seed, 20000, 60);
    run_against_model<3>(seed, 20000, 300);
    run_against_model<3>(seed, 40000, 6000);
  }
}

TEST_CASE("a bad hash costs time and nothing else") {
  for (const uint64_t seed : seeds(2)) {
    run_against_model<0>(seed, 8000, 1000);
    run_against_model<1>(seed, 20000, 3000);
    run_against_model<2>(seed, 20000, 3000);
  }
}

TEST_CASE("a map keeps the order of insertion up to 128 elements, also after an erase") {
  Model<3> model;
  for (int i = 0; i < 128; ++i) model.insert(std::to_string(i * 7));
  CHECK(model.map.is_ordered());
  model.erase("70", false);
  model.insert("70");
  model.check();
  CHECK(model.map.is_ordered());
  model.insert("one more");
  CHECK_FALSE(model.map.is_ordered());
  model.check();
  while (model.order.size() > 3) model.erase(model.order.back(), false);
  CHECK_FALSE(model.map.is_ordered());
  model.map.clear();
  CHECK(model.map.is_ordered());
}

TEST_CASE("a map of three elements costs less than 100 bytes") {
  Model<3> model;
  for (int i = 0; i < 3; ++i) model.insert(std::to_string(i));
  CHECK(sizeof(model.map) <= 32);
  CHECK(sizeof(model.map) + model.map.memory_bytes() < 100);
}

TEST_CASE("find_hash returns a node of exactly that hash") {
  Model<3> model;
  for (int i = 0; i < 5000; ++i) model.insert(std::to_string(i));
  for (int i = 0; i < 5000; ++i) {
    const std::string name = std::to_string(i);
    const uint64_t hash = ItemTraits<3>::hash(name);
    CHECK(model.map.find_hash(hash, [](const Item*) { return true; })->name == name);
    CHECK(model.map.find_hash(hash, [](const Item*) { return false; }) == nullptr);
    CHECK(model.map.find_hash(hash ^ 1, [](const Item*) { return true; }) == nullptr);
  }
}

TEST_CASE("a reserved map fills without growing much, and a moved map leaves an empty one") {
  for (const size_t n : {10u, 100u, 129u, 1000u, 20000u}) {
    Model<3> model;
    model.insert("first");
    model.map.reserve(n);
    const size_t before = model.map.memory_bytes();
    for (size_t i = 0; model.map.size() < n; ++i) model.insert(std::to_string(i));
    model.check();
    CHECK(model.map.memory_bytes() <= before + before / 8);
    auto moved = std::move(model.map);
    CHECK(model.map.size() == 0);
    CHECK(moved.size() == n);
    moved.check();
    model.map = std::move(moved);
    model.check();
  }
}

TEST_CASE("elements in the order of their hashes say how many will come, others do not") {
  using Traits = ItemTraits<3>;
  std::map<uint64_t, std::string> names;
  for (int i = 0; i < 100'000; ++i) {
    const std::string name = std::to_string(i);
    names.emplace(Traits::hash(name), name);
  }
  Model<3> in_order;
  Model<3> by_name;
  for (const auto& [hash, name] : names) {
    if (in_order.map.size() == Traits::kMaxOrdered) break;
    in_order.insert(name);
    by_name.insert(std::to_string(by_name.map.size()));
  }
  in_order.map.reserve_by_density();
  by_name.map.reserve_by_density();
  CHECK(by_name.map.is_ordered());
  CHECK_FALSE(in_order.map.is_ordered());
  const size_t reserved = in_order.map.memory_bytes();
  for (const auto& [hash, name] : names) in_order.insert(name);
  in_order.check();
  // 128 of them determine it within about a tenth; the tables are then at most half as large again.
  CHECK(reserved > in_order.map.memory_bytes() / 2);
  CHECK(reserved < in_order.map.memory_bytes() * 3 / 2);
}

TEST_CASE("what stays during a whole scan is returned exactly once, whatever comes and goes") {
  for (const uint64_t seed : seeds(6)) {
    use_seed(seed);
    INFO("seed ", seed);
    std::mt19937_64 random(seed);
    for (int round = 0; round < 12; ++round) {
      Model<3> model;
      std::set<std::string> stay;
      const size_t n = random() % 3 == 0 ? random() % 200 : random() % 6000;
      for (size_t i = 0; i < n; ++i) {
        model.insert("stay" + std::to_string(i));
        stay.insert("stay" + std::to_string(i));
      }
      const size_t crowd = random() % 8000;
      const bool shrinking = random() % 2 == 0;
      for (size_t i = 0; shrinking && i < crowd; ++i) model.insert("go" + std::to_string(i));
      std::map<std::string, int> seen;
      uint64_t cursor = 0;
      size_t next = 0;
      do {
        cursor = model.map.scan(cursor, random() % 50, [&](Item* item) { ++seen[item->name]; });
        CHECK((cursor >> 48) == 0);
        for (size_t i = random() % (crowd / 8 + 1); i > 0 && next < crowd; --i, ++next) {
          const std::string name = "go" + std::to_string(next);
          shrinking ? model.erase(name, false) : model.insert(name);
        }
      } while (cursor != 0);
      for (const auto& name : stay) {
        if (seen[name] != 1) FAIL(name, " was seen ", seen[name], " times");
      }
      for (const auto& [name, times] : seen) CHECK(times <= 1);
    }
  }
}

TEST_CASE("a scan of count n returns n elements, and more only where a prefix is shared") {
  Model<3> model;
  for (int i = 0; i < 3000; ++i) model.insert(std::to_string(i));
  uint64_t cursor = 0;
  size_t total = 0;
  do {
    size_t got = 0;
    cursor = model.map.scan(cursor, 10, [&](Item*) { ++got; });
    CHECK(got == 10);
    total += got;
  } while (cursor != 0);
  CHECK(total == 3000);

  Model<0> colliding;  // One prefix: all at once.
  for (int i = 0; i < 500; ++i) colliding.insert(std::to_string(i));
  size_t got = 0;
  CHECK(colliding.map.scan(0, 10, [&](Item*) { ++got; }) == 0);
  CHECK(got == 500);
  CHECK(model.map.scan(~uint64_t{0}, 10, [](Item*) {}) == 0);
}

TEST_CASE("random gives every element about the same chance") {
  for (const int n : {1, 5, 100, 200, 1000}) {
    Model<3> model;
    for (int i = 0; i < n; ++i) model.insert(std::to_string(i));
    std::unordered_map<std::string, int> hits;
    const int tries = n * 200;
    for (int i = 0; i < tries; ++i) ++hits[model.map.random(mix(i + 1))->name];
    CHECK(hits.size() == static_cast<size_t>(n));
    for (const auto& [name, count] : hits) {
      CHECK(count > 100);
      CHECK(count < 310);
    }
    while (model.order.size() > 1) model.erase(model.order.front(), false);
    CHECK(model.map.random(7)->name == model.order.front());
  }
  Model<3> empty;
  CHECK(empty.map.random(1) == nullptr);
}

TEST_CASE("random gives every element the same chance where only some of the tables have split") {
  // The tables split at 413 elements, so of these eight about half have.
  constexpr int kElements = 3304;
  constexpr int kTries = 400;
  Model<3> model;
  for (int i = 0; i < kElements; ++i) model.insert(std::to_string(i));
  std::unordered_map<const Item*, int> hits;
  for (int i = 0; i < kElements * kTries; ++i) ++hits[model.map.random(mix(i + 1))];
  CHECK(hits.size() == kElements);
  for (const auto& [item, count] : hits) {
    CHECK(count > kTries * 3 / 4);
    CHECK(count < kTries * 5 / 4);
  }
}

TEST_CASE("overhead is at most 15 bytes an element at any size") {
  std::vector<std::unique_ptr<Item>> items;
  SplitMap<Item, ItemTraits<3>> map;
  double worst = 0;
  for (int i = 0; i < 200000; ++i) {
    items.push_back(std::make_unique<Item>(Item{std::to_string(i)}));
    map.insert(items.back().get(), ItemTraits<3>::hash(items.back()->name));
    if (i > 200) worst = std::max(worst, static_cast<double>(map.memory_bytes()) / (i + 1));
  }
  MESSAGE("worst bytes an element: ", worst);
  CHECK(worst <= 15);
}
