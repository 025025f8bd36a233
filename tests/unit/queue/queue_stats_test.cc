// The distributions and rates of a queue, compared with plain sums and sorted values.
#include "engine/queue/queue_stats.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/support/seeds.h"
#include "tests/support/test.h"

namespace {

using sluice::Histogram;
using sluice::QueueStats;
using sluice::RecentCount;
using sluice::RecentMean;
using sluice::TagLine;
using sluice::testing::use_seed;

void check_quantiles(const Histogram& histogram, std::vector<int64_t> values) {
  std::sort(values.begin(), values.end());
  for (const double share : {0.0, 0.1, 0.5, 0.9, 0.95, 0.99, 1.0}) {
    const auto wanted = std::max<size_t>(
        1, static_cast<size_t>(std::ceil(share * static_cast<double>(values.size()))));
    const int64_t exact = values[wanted - 1];
    const int64_t told = histogram.quantile(share);
    INFO("share ", share, " exact ", exact, " told ", told);
    REQUIRE(told >= exact);
    REQUIRE(told - exact <= exact / 64);
    if (exact < 128) REQUIRE(told == exact);
    REQUIRE(told <= histogram.max());
  }
}

TEST_CASE("quantiles are exact to one part in 64, and never above the greatest value") {
  for (const uint64_t seed : sluice::testing::seeds(40, 104729)) {
    use_seed(seed);
    INFO("seed ", seed);
    std::mt19937_64 random(seed);
    Histogram histogram;
    Histogram half;
    Histogram other_half;
    std::vector<int64_t> values;
    const uint64_t bits = 1 + random() % 39;
    int64_t sum = 0;
    const size_t count = 1 + random() % 500;
    for (size_t i = 0; i < count; ++i) {
      const auto value = static_cast<int64_t>(random() >> (64 - 1 - random() % bits));
      values.push_back(value);
      sum += value;
      histogram.record(value);
      (i % 2 == 0 ? half : other_half).record(value);
    }
    check_quantiles(histogram, values);
    REQUIRE(histogram.count() == values.size());
    REQUIRE(histogram.max() == *std::max_element(values.begin(), values.end()));
    REQUIRE(histogram.mean() ==
            doctest::Approx(static_cast<double>(sum) / static_cast<double>(values.size())));
    half.merge(other_half);
    REQUIRE(half.count() == histogram.count());
    REQUIRE(half.max() == histogram.max());
    for (const double share : {0.5, 0.95, 0.99}) {
      REQUIRE(half.quantile(share) == histogram.quantile(share));
    }
  }
}

TEST_CASE("every border of a bucket is within its precision") {
  for (int power = 0; power < 39; ++power) {
    for (const int64_t around : {-1, 0, 1}) {
      const int64_t value = (int64_t{1} << power) + around;
      Histogram histogram;
      histogram.record(value);
      histogram.record(value * 2 + 1);
      check_quantiles(histogram, {value, value * 2 + 1});
    }
  }
}

TEST_CASE("an empty histogram is zero, and values out of range are kept at its ends") {
  Histogram histogram;
  CHECK(histogram.quantile(0.5) == 0);
  CHECK(histogram.mean() == 0);
  CHECK(histogram.max() == 0);
  histogram.record(-5);
  CHECK(histogram.quantile(1) == 0);
  histogram.record(INT64_MAX);
  CHECK(histogram.max() == (int64_t{1} << 40) - 1);
  CHECK(histogram.quantile(1) == histogram.max());
  CHECK(histogram.memory_bytes() < 20'000);
}

// Doubles the number of values, `times` times.
Histogram doubled(Histogram histogram, int times) {
  for (int i = 0; i < times; ++i) histogram.merge(Histogram(histogram));
  return histogram;
}

TEST_CASE("no bucket wraps at 2^32") {
  Histogram zero;
  zero.record(0);
  Histogram histogram;
  for (int power = 0; power < 32; ++power) histogram.merge(doubled(zero, power));
  REQUIRE(histogram.count() == UINT32_MAX);
  for (int i = 0; i < 2; ++i) {
    histogram.record(0);
    REQUIRE(histogram.quantile(0.5) == 0);
    REQUIRE(histogram.quantile(1) == 0);
    REQUIRE(histogram.counts_up_to(std::vector<int64_t>{0, 1000}) ==
            std::vector<uint64_t>{histogram.count(), histogram.count()});
  }
  CHECK(histogram.count() == (uint64_t{1} << 32) + 1);
}

TEST_CASE("counts above 2^53 and sums above 2^63 are exact") {
  constexpr int64_t kLongest = (int64_t{1} << 40) - 1;
  Histogram histogram;
  histogram.record(5);
  histogram.record(kLongest);
  histogram = doubled(histogram, 54);
  histogram.record(0);
  constexpr uint64_t kCount = uint64_t{1} << 54;
  CHECK(histogram.count() == 2 * kCount + 1);
  CHECK(histogram.counts_up_to(std::vector<int64_t>{0, 5, kLongest}) ==
        std::vector<uint64_t>{1, kCount + 1, 2 * kCount + 1});
  CHECK(histogram.quantile(0.25) == 5);
  CHECK(histogram.quantile(0.75) == kLongest);
  CHECK(histogram.mean() == doctest::Approx(static_cast<double>(kLongest + 5) / 2));
}

TEST_CASE("the mean is of the last hundred") {
  RecentMean mean;
  CHECK(mean.count() == 0);
  CHECK(mean.mean() == 0);
  for (int64_t i = 1; i <= 250; ++i) {
    mean.record(i);
    const int64_t first = std::max<int64_t>(1, i - 99);
    REQUIRE(mean.count() == static_cast<size_t>(std::min<int64_t>(i, 100)));
    REQUIRE(mean.mean() == doctest::Approx(static_cast<double>(first + i) / 2.0));
  }
}

TEST_CASE("a steady stream has its own rate in every window") {
  RecentCount count;
  int64_t now = 1'700'000'000'000;
  for (int i = 0; i < 2000; ++i) count.record(now += 50);  // 20 a second, 100 s
  for (const int64_t window : {1000, 2000, 10'000, 60'000}) {
    INFO("window ", window);
    CHECK(count.per_second(now, window) == doctest::Approx(20).epsilon(0.06));
  }
  CHECK(count.per_second(now, 600'000) == count.per_second(now, 60'000));
  CHECK(count.per_second(now, 0) == count.per_second(now, 1000));
  CHECK(count.per_second(now + 30'000, 60'000) == doctest::Approx(10).epsilon(0.06));
  CHECK(count.per_second(now + 61'000, 60'000) == 0);
}

TEST_CASE("many at once are counted") {
  RecentCount count;
  count.record(5'000, 30);
  count.record(5'100, 30);
  CHECK(count.per_second(5'500, 60'000) == doctest::Approx(1));
}

TEST_CASE("tags beyond the room share a line") {
  QueueStats stats;
  for (size_t i = 0; i < QueueStats::kMaxTagNames; ++i) {
    CHECK(stats.tag("name" + std::to_string(i), "v") != nullptr);
  }
  CHECK(stats.tag("one more", "v") == nullptr);
  CHECK(stats.tag_values("one more") == nullptr);
  for (size_t i = 0; i < 200; ++i) {
    TagLine* line = stats.tag("name0", std::to_string(i));
    REQUIRE(line != nullptr);
    ++line->totals.added;
  }
  const sluice::TagValues* values = stats.tag_values("name0");
  REQUIRE(values != nullptr);
  CHECK(values->size() == QueueStats::kMaxTagValues);
  // 64 lines: "v", the values 0..61, and the rest.
  CHECK(values->find("61")->second.totals.added == 1);
  CHECK(values->find("*")->second.totals.added == 138);
  CHECK(stats.tag("name0", "61") == &values->find("61")->second);
}

TEST_CASE("refusals have names") {
  for (size_t i = 0; i < sluice::kRejections; ++i) {
    CHECK_FALSE(sluice::rejection_name(static_cast<sluice::Rejection>(i)).empty());
  }
}

}  // namespace
