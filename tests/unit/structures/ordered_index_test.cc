// OrderedIndex compared with std::multiset, and its guarantees on rank, range and memory.
#include "engine/structures/ordered_index.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/seeds.h"
#include "tests/support/test.h"

namespace {

using sluice::NoTie;
using sluice::NoValue;
using sluice::OrderedIndex;

using sluice::testing::use_seed;

std::vector<uint64_t> seeds(uint64_t count) { return sluice::testing::seeds(count, 104729); }

struct ByNumber {
  bool operator()(uint32_t a, uint32_t b) const { return a < b; }
};
// A value that is owned elsewhere and destroyed with its entry, like the member of a sorted set.
struct ByText {
  bool operator()(const std::string* a, const std::string* b) const { return *a < *b; }
};

using Key = std::tuple<uint64_t, uint64_t, uint32_t>;
using Index = OrderedIndex<uint32_t, ByNumber>;

class Model {
 public:
  void insert(const Key& key) {
    const auto& [major, minor, value] = key;
    index.insert(major, minor, value);
    keys.insert(key);
  }
  void erase(const Key& key) {
    const auto& [major, minor, value] = key;
    const auto it = keys.find(key);
    CHECK(index.contains(major, minor, value) == (it != keys.end()));
    CHECK(index.erase(major, minor, value) == (it != keys.end()));
    if (it != keys.end()) keys.erase(it);
  }
  void pop(bool at_front) {
    if (keys.empty()) return;
    const auto it = at_front ? keys.begin() : std::prev(keys.end());
    const auto peeked = at_front ? index.front() : index.back();
    const auto entry = at_front ? index.pop_front() : index.pop_back();
    CHECK(Key(entry.major, entry.minor, entry.value) == *it);
    CHECK(Key(peeked.major, peeked.minor, peeked.value) == *it);
    keys.erase(it);
  }
  void erase_at(uint64_t rank) {
    const auto at = index.at(rank);
    const Key key(at.major(), at.minor(), at.value());
    CHECK(key == *std::next(keys.begin(), static_cast<std::ptrdiff_t>(rank)));
    erase(key);
  }
  void check_queries(const Key& key) const {
    const auto& [major, minor, value] = key;
    const auto before = static_cast<uint64_t>(std::distance(keys.begin(), keys.lower_bound(key)));
    CHECK(index.rank(major, minor, value) == before);
    const auto it = index.lower_bound(major, minor, value);
    CHECK(it.valid() == (before < keys.size()));
    if (it.valid()) CHECK(Key(it.major(), it.minor(), it.value()) == *keys.lower_bound(key));
    const auto pair = keys.lower_bound(Key(major, minor, 0));
    const auto pair_rank = static_cast<uint64_t>(std::distance(keys.begin(), pair));
    CHECK(index.count_below(major, minor) == pair_rank);
    uint64_t rank = 0;
    const auto by =
        index.lower_bound_by([m = major](uint64_t a, uint64_t, uint32_t) { return a <= m; }, &rank);
    const auto behind = keys.upper_bound(Key(major, ~uint64_t{0}, ~uint32_t{0}));
    CHECK(rank == static_cast<uint64_t>(std::distance(keys.begin(), behind)));
    CHECK(by.valid() == (behind != keys.end()));
    if (by.valid()) CHECK(Key(by.major(), by.minor(), by.value()) == *behind);
    CHECK(index.count_below(major + 1) == rank);
  }
  void check() const {
    index.check();
    CHECK(index.size() == keys.size());
    uint64_t rank = 0;
    auto it = index.begin();
    for (const auto& key : keys) {
      CHECK(Key(it.major(), it.minor(), it.value()) == key);
      if (rank % 97 == 0) {
        const auto at = index.at(rank);
        CHECK(Key(at.major(), at.minor(), at.value()) == key);
      }
      it.next();
      ++rank;
    }
    CHECK_FALSE(it.valid());
    CHECK_FALSE(index.at(rank).valid());
    auto back = index.last();
    for (auto key = keys.rbegin(); key != keys.rend(); ++key, back.prev()) {
      CHECK(Key(back.major(), back.minor(), back.value()) == *key);
    }
    CHECK_FALSE(back.valid());
  }

  Index index;
  std::multiset<Key> keys;
};

void run_against_model(uint64_t seed, int operations, uint64_t spread, bool pops) {
  use_seed(seed);
  INFO("seed ", seed, " spread ", spread, " pops ", pops);
  std::mt19937_64 random(seed);
  Model model;
  uint64_t sequence = 0;
  uint64_t phase = 0;
  const auto draw = [&] {
    return Key(random() % spread, random() % 3 == 0 ? 7 : random() % spread,
               static_cast<uint32_t>(random() % 4));
  };
  for (int i = 0; i < operations; ++i) {
    if (random() % (static_cast<uint64_t>(operations) / 8 + 1) == 0) phase = random() % 4;
    const uint64_t dice = random() % 10;
    if (dice < (phase == 0 ? 8u : phase == 1 ? 2u : 5u)) {
      // Phase 2 appends in bands, phase 3 inserts in falling order.
      if (phase == 2) model.insert(Key(random() % 5, ++sequence, 0));
      if (phase == 3) model.insert(Key(0, ~++sequence, 0));
      if (phase < 2) model.insert(draw());
    } else if (pops && dice == 9) {
      model.pop(random() % 2 == 0);
    } else if (!model.keys.empty() && random() % 2 == 0) {
      if (model.keys.size() < 600 || random() % 20 == 0) {
        model.erase_at(random() % model.keys.size());
      } else {
        model.erase(*model.keys.lower_bound(std::min(draw(), *model.keys.rbegin())));
      }
    } else {
      model.erase(draw());
    }
    if (random() % 300 == 0) model.check_queries(draw());
    if (random() % (static_cast<uint64_t>(operations) / 15 + 1) == 0) model.check();
  }
  model.check();
  while (!model.keys.empty()) {
    if (random() % 2 == 0) {
      model.pop(random() % 2 == 0);
    } else {
      model.erase(*model.keys.lower_bound(std::min(draw(), *model.keys.rbegin())));
    }
    if (random() % 1000 == 0) model.check();
  }
  model.check();
  CHECK(model.index.memory_bytes() == 0);
}

}  // namespace

TEST_CASE("a random history leaves the entries, ranks and ranges of a std::multiset") {
  for (const uint64_t seed : seeds(4)) {
    run_against_model(seed, 3000, 10, true);
    run_against_model(seed, 30000, 60, false);
    run_against_model(seed, 60000, 100000, true);
    run_against_model(seed, 30000, 2000, true);
  }
}

TEST_CASE("the separators never refer to a value whose entry is gone") {
  // Values are freed as soon as they are erased: the address sanitizer sees any late use.
  for (const uint64_t seed : seeds(3)) {
    use_seed(seed);
    INFO("seed ", seed);
    std::mt19937_64 random(seed);
    OrderedIndex<std::string*, ByText> index;
    std::vector<std::unique_ptr<std::string>> texts;
    std::multiset<std::string> model;
    for (int i = 0; i < 40000; ++i) {
      if (random() % 10 < (i < 20000 ? 7u : 3u) || texts.empty()) {
        texts.push_back(std::make_unique<std::string>(std::to_string(random())));
        index.insert(5, 5, texts.back().get());
        model.insert(*texts.back());
        continue;
      }
      auto& text = texts[random() % texts.size()];
      if (random() % 3 == 0) {
        auto moved = std::make_unique<std::string>(*text);
        CHECK(index.replace_value(5, 5, text.get(), moved.get()));
        text = std::move(moved);
        continue;
      }
      CHECK(index.erase(5, 5, text.get()));
      model.erase(model.find(*text));
      std::swap(text, texts.back());
      texts.pop_back();
    }
    index.check();
    auto it = index.begin();
    for (const auto& text : model) {
      CHECK(*it.value() == text);
      it.next();
    }
    CHECK_FALSE(it.valid());
  }
}

TEST_CASE("without a tie order the very value is erased, however many equals it has") {
  OrderedIndex<uint32_t> index;
  for (uint32_t i = 0; i < 1000; ++i) index.insert(1, 1, i);
  index.insert(0, 9, 1);
  index.insert(2, 0, 1);
  for (uint32_t i = 0; i < 1000; i += 3) CHECK(index.erase(1, 1, i));
  for (uint32_t i = 0; i < 1000; i += 3) CHECK_FALSE(index.erase(1, 1, i));
  index.check();
  CHECK(index.size() == 1002 - 334);
  CHECK(index.count_below(2) - index.count_below(1) == 666);
  CHECK(index.find(1, 1, 500).valid());
  CHECK_FALSE(index.find(1, 1, 501).valid());
  CHECK_FALSE(index.erase(0, 1, 1));
}

TEST_CASE("equal entries leave in the order in which they came") {
  OrderedIndex<uint32_t> index;
  for (uint32_t i = 0; i < 5000; ++i) index.insert(i % 5, 0, i);
  uint32_t last = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto entry = index.pop_front();
    CHECK(entry.major == 0);
    CHECK(entry.value >= last);
    last = entry.value;
  }
  CHECK(index.front().major == 1);
}

TEST_CASE("an empty value takes no space, and entries that come in order fill the nodes") {
  OrderedIndex<> plain;
  OrderedIndex<uint32_t> bands;
  OrderedIndex<uint64_t> falling;
  const uint32_t n = 100000;
  for (uint32_t i = 0; i < n; ++i) {
    plain.insert(i, 0);
    bands.insert(i % 5 * 1000000000000 + i, 0, i);
    falling.insert(n - i, 0, i);
  }
  CHECK(static_cast<double>(plain.memory_bytes()) / n < 17.5);
  CHECK(static_cast<double>(bands.memory_bytes()) / n < 21.5);
  CHECK(static_cast<double>(falling.memory_bytes()) / n < 25.5);
  plain.check();
  bands.check();
  falling.check();
}

TEST_CASE("entries that come nearly in order leave hardly any room in the nodes") {
  std::mt19937_64 random(11);
  OrderedIndex<> expiries;                        // a dozen a millisecond, in random order
  OrderedIndex<> jittered;                        // up to 64 places away from their own
  OrderedIndex<const std::string*, ByText> ties;  // equal keys, ordered by their values alone
  std::vector<std::unique_ptr<std::string>> texts;
  const uint32_t n = 100000;
  for (uint32_t i = 0; i < n; ++i) {
    expiries.insert(i / 12, random());
    jittered.insert(i + random() % 64, 0);
    texts.push_back(std::make_unique<std::string>(std::to_string(random())));
    ties.insert(1, 1, texts.back().get());
  }
  expiries.check();
  jittered.check();
  ties.check();
  CHECK(static_cast<double>(expiries.memory_bytes()) / n < 20);
  CHECK(static_cast<double>(jittered.memory_bytes()) / n < 20);
  CHECK(static_cast<double>(ties.memory_bytes()) / n < 32);
}

TEST_CASE("random deletes give the memory back") {
  std::mt19937_64 random(3);
  OrderedIndex<> index;
  std::vector<uint64_t> keys;
  for (int i = 0; i < 100000; ++i) {
    keys.push_back(random());
    index.insert(keys.back(), 0);
  }
  CHECK(index.memory_bytes() / 100000 < 22);
  std::shuffle(keys.begin(), keys.end(), random);
  while (keys.size() > 1000) {
    CHECK(index.erase(keys.back(), 0));
    keys.pop_back();
  }
  index.check();
  CHECK(index.memory_bytes() / 1000 < 100);
}

TEST_CASE("the only entry takes other keys where it is, and no other does") {
  OrderedIndex<uint32_t> index;
  CHECK_FALSE(index.rekey_only(1, 2));
  index.insert(5, 6, 7);
  CHECK(index.rekey_only(1, 2));
  index.check();
  CHECK(index.contains(1, 2, 7));
  CHECK_FALSE(index.contains(5, 6, 7));
  index.insert(0, 9, 8);
  index.insert(1, 3, 9);
  CHECK_FALSE(index.rekey_only(4, 4));
  CHECK(index.front().value == 8);
  CHECK(index.back().value == 9);
  // Also after it was the last of many.
  for (uint32_t i = 0; i < 1000; ++i) index.insert(10 + i, 0, i);
  while (index.size() > 1) index.pop_front();
  index.rekey_only(3, 3) ? CHECK(index.contains(3, 3, 999)) : CHECK(index.contains(1009, 0, 999));
  index.check();
}

TEST_CASE("a small root costs little") {
  OrderedIndex<uint64_t> index;
  CHECK(index.memory_bytes() == 0);
  index.insert(1, 1, 1);
  CHECK(sizeof(index) + index.memory_bytes() <= 168);
  for (uint64_t i = 0; i < 4; ++i) index.insert(i, 0, 0);
  CHECK(index.memory_bytes() <= 448);
}

TEST_CASE("a moved index leaves an empty one") {
  OrderedIndex<uint32_t> index;
  for (uint32_t i = 0; i < 1000; ++i) index.insert(i, i, i);
  OrderedIndex<uint32_t> moved = std::move(index);
  CHECK(index.empty());
  CHECK_FALSE(index.begin().valid());
  CHECK_FALSE(index.last().valid());
  CHECK_FALSE(index.lower_bound(0).valid());
  moved.check();
  index = std::move(moved);
  CHECK(index.size() == 1000);
  index.check();
  index.clear();
  index.check();
  index.insert(1, 2, 3);
  index.check();
}

TEST_CASE("doubles keep their order as integers") {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> numbers = {-infinity, -1e308, -2.5, -1,  -5e-324, 0,
                                       5e-324,    0.5,    1,    1.5, 1e308,   infinity};
  for (size_t i = 0; i < numbers.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      CHECK(sluice::order_preserving(numbers[j]) < sluice::order_preserving(numbers[i]));
    }
  }
  CHECK(sluice::order_preserving(-0.0) == sluice::order_preserving(0.0));
}
