// PackedList compared with std::deque.
#include "engine/structures/packed_list.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "tests/support/seeds.h"
#include "tests/support/test.h"

namespace {

using sluice::Bytes;
using sluice::PackedList;

using sluice::testing::use_seed;

std::vector<uint64_t> seeds(uint64_t count) { return sluice::testing::seeds(count, 15485863); }

void compare(const PackedList& list, const std::deque<std::string>& model) {
  list.check();
  REQUIRE(list.size() == model.size());
  auto it = list.begin();
  for (size_t i = 0; i < model.size(); ++i, it.next()) {
    REQUIRE(it.valid());
    REQUIRE(it.index() == i);
    REQUIRE(it.value() == model[i]);
  }
  CHECK_FALSE(it.valid());
  auto back = list.last();
  for (size_t i = model.size(); i-- > 0; back.prev()) {
    REQUIRE(back.index() == i);
    REQUIRE(back.value() == model[i]);
  }
  CHECK_FALSE(back.valid());
}

// Sizes around every limit of the encoding and of a chunk.
std::string draw_value(std::mt19937_64& random, int style) {
  static const size_t kBorders[] = {0,    1,    253,  254,  255,  256,   4072,  4074,
                                    4075, 8150, 8154, 8160, 8161, 65535, 65536, 70000};
  size_t size = random() % 8;
  if (style == 1) size = random() % 300;
  if (style == 2) size = random() % 30 == 0 ? kBorders[random() % 16] : random() % 20;
  if (style == 3) size = random() % 3000;
  std::string value(size, static_cast<char>('a' + random() % 26));
  for (size_t i = 0; i < std::min<size_t>(size, 8); ++i) value[i] = static_cast<char>(random());
  return value;
}

void run_against_model(uint64_t seed, int style, int operations, size_t limit) {
  use_seed(seed);
  INFO("seed ", seed, " style ", style, " limit ", limit);
  std::mt19937_64 random(seed);
  PackedList list;
  std::deque<std::string> model;
  bool growing = true;
  for (int i = 0; i < operations; ++i) {
    if (model.size() > limit) growing = false;
    if (model.size() < limit / 8) growing = true;
    const std::string value = draw_value(random, style);
    const size_t at = model.empty() ? 0 : random() % model.size();
    const auto place = model.begin() + static_cast<std::ptrdiff_t>(at);
    uint64_t dice = random() % 12;
    if (dice < 8 && !growing) dice = 8 + dice % 4;
    if (dice < 3) {
      list.push_back(value);
      model.push_back(value);
    } else if (dice < 6) {
      list.push_front(value);
      model.push_front(value);
    } else if (dice < 8) {
      list.insert_before(at, value);
      model.insert(place, value);
    } else if (model.empty()) {
      continue;
    } else if (dice == 8) {
      list.set(at, value);
      *place = value;
    } else if (dice == 9) {
      list.erase(at);
      model.erase(place);
    } else if (dice == 10) {
      CHECK(list.front() == model.front());
      CHECK(list.pop_front() == model.front());
      model.pop_front();
    } else {
      CHECK(list.back() == model.back());
      list.pop_back([&](Bytes last) { CHECK(last == model.back()); });
      model.pop_back();
    }
    if (random() % 400 == 0) {
      const size_t first = model.empty() ? 0 : random() % model.size();
      const size_t count = random() % (model.size() - first + 1) / 4;
      list.erase_range(first, count);
      const auto begin = model.begin() + static_cast<std::ptrdiff_t>(first);
      model.erase(begin, begin + static_cast<std::ptrdiff_t>(count));
    }
    if (!model.empty()) {
      const size_t any = random() % model.size();
      REQUIRE(list.at(any) == model[any]);
    }
    if (random() % 500 == 0) compare(list, model);
  }
  compare(list, model);
  while (!model.empty()) {
    CHECK(list.pop_front() == model.front());
    model.pop_front();
  }
  CHECK(list.memory_bytes() == 0);
}

}  // namespace

TEST_CASE("a random history leaves the elements of a std::deque") {
  for (const uint64_t seed : seeds(3)) {
    run_against_model(seed, 0, 20000, 100);
    run_against_model(seed, 0, 20000, 5000);
    run_against_model(seed, 1, 20000, 2000);
    run_against_model(seed, 2, 20000, 1000);
    run_against_model(seed, 3, 10000, 300);
  }
}

TEST_CASE("values of every border size come back from both sides") {
  for (const size_t size : {0, 1, 253, 254, 255, 65535, 65536, 1000000}) {
    PackedList list;
    const std::string value(size, 'x');
    list.push_back("before");
    list.push_back(value);
    list.push_back("behind");
    list.push_front(value);
    list.check();
    CHECK(list.front() == value);
    CHECK(list.at(2) == value);
    CHECK(list.pop_back() == "behind");
    CHECK(list.back() == value);
    CHECK(list.pop_back() == value);
    CHECK(list.pop_back() == "before");
    CHECK(list.pop_back() == value);
    CHECK(list.empty());
  }
}

TEST_CASE("erasing while walking visits every element once") {
  for (const uint64_t seed : seeds(4)) {
    use_seed(seed);
    INFO("seed ", seed);
    std::mt19937_64 random(seed);
    PackedList list;
    std::deque<std::string> model;
    for (int i = 0; i < 6000; ++i) list.push_back(std::to_string(i));
    size_t visited = 0;
    const uint64_t keep = 1 + random() % 6;
    for (auto it = list.begin(); it.valid(); ++visited) {
      CHECK(it.value() == std::to_string(visited));
      if (random() % keep == 0) {
        model.emplace_back(it.value());
        it.next();
      } else {
        it = list.erase(it);
      }
    }
    CHECK(visited == 6000);
    compare(list, model);
  }
}

TEST_CASE("inserting before an iterator puts the element there") {
  PackedList list;
  std::deque<std::string> model;
  std::mt19937_64 random(11);
  for (int i = 0; i < 5000; ++i) {
    const std::string value = std::to_string(i) + std::string(random() % 40, '.');
    const size_t at = random() % (model.size() + 1);
    list.insert_before(list.iterate(at), value);
    model.insert(model.begin() + static_cast<std::ptrdiff_t>(at), value);
  }
  compare(list, model);
}

TEST_CASE("a list trimmed to its tail, its head and its middle keeps the rest") {
  for (const size_t cut : {0u, 1u, 1023u, 1024u, 1025u, 5000u, 9999u, 10000u}) {
    for (const int where : {0, 1, 2}) {
      PackedList list;
      std::deque<std::string> model;
      for (int i = 0; i < 10000; ++i) model.push_back(std::to_string(i));
      for (const auto& value : model) list.push_back(value);
      const size_t first = where == 0 ? 0 : where == 1 ? 10000 - cut : (10000 - cut) / 2;
      list.erase_range(first, cut);
      const auto begin = model.begin() + static_cast<std::ptrdiff_t>(first);
      model.erase(begin, begin + static_cast<std::ptrdiff_t>(cut));
      compare(list, model);
    }
  }
}

TEST_CASE("a short list costs little, a long one a few bytes an element") {
  PackedList list;
  CHECK(list.memory_bytes() == 0);
  list.push_back("job");
  CHECK(sizeof(list) + list.memory_bytes() <= 160);
  for (int i = 0; i < 100000; ++i) list.push_back("0123456789");
  CHECK(static_cast<double>(list.memory_bytes()) / 100000 < 17);
  while (list.size() > 3) list.drop_front();
  CHECK(list.memory_bytes() <= 256);
  list.check();
  PackedList moved = std::move(list);
  CHECK(list.empty());
  CHECK(moved.size() == 3);
}

TEST_CASE("a list that has lost most of its elements costs little, whatever has taken them") {
  const std::string value = "0123456789";
  const auto filled = [&](int elements) {
    PackedList list;
    for (int i = 0; i < elements; ++i) list.push_back(value);
    return list;
  };
  PackedList trimmed = filled(400);
  trimmed.erase_range(3, 397);
  CHECK(trimmed.memory_bytes() <= 256);
  PackedList erased = filled(400);
  while (erased.size() > 3) erased.erase(1);
  CHECK(erased.memory_bytes() <= 256);
  PackedList sparse = filled(100'000);
  for (auto it = sparse.begin(); it.valid();) {
    for (int i = 0; i < 19 && it.valid(); ++i) it = sparse.erase(it);
    if (it.valid()) it.next();
  }
  sparse.check();
  CHECK(sparse.size() == 5000);
  CHECK(static_cast<double>(sparse.memory_bytes()) / 5000 < 60);
}
