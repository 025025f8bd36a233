#include "engine/reply/statistics.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "tests/support/test.h"

namespace sluice {
namespace {

TEST_CASE("every duration has a bucket whose bounds hold it, to two significant digits") {
  size_t last = 0;
  for (uint64_t ns = 0; ns < LatencyHistogram::kMostNs; ns += 1 + ns / 1000) {
    const size_t bucket = LatencyHistogram::bucket_of(ns);
    REQUIRE_GE(bucket, last);
    REQUIRE_LE(LatencyHistogram::lowest_ns(bucket), ns);
    REQUIRE_GE(LatencyHistogram::highest_ns(bucket), ns);
    REQUIRE_LE(LatencyHistogram::highest_ns(bucket) - LatencyHistogram::lowest_ns(bucket),
               ns / 128);
    last = bucket;
  }
  // Redis's names for powers of two: 1024 * 2^n nanoseconds, as whole microseconds.
  for (const auto& [ns, us] : std::vector<std::pair<uint64_t, uint64_t>>{
           {1024, 1}, {16384, 16}, {32768, 33}, {131072, 132}, {1048576, 1056}}) {
    CHECK_EQ(LatencyHistogram::highest_ns(LatencyHistogram::bucket_of(ns)) / 1000, us);
  }
}

TEST_CASE("percentiles and counts are those of a sorted list") {
  std::mt19937_64 random(7);
  LatencyHistogram one;
  LatencyHistogram other;
  std::vector<uint64_t> all;
  for (int i = 0; i < 5000; ++i) {
    const auto ns = static_cast<uint64_t>(std::exp(static_cast<double>(random() % 2000) / 100));
    (i % 3 == 0 ? one : other).add(ns);
    all.push_back(ns);
  }
  std::sort(all.begin(), all.end());
  LatencySum sum;
  sum.add(one);
  sum.add(other);
  REQUIRE_EQ(sum.count(), all.size());
  for (const double percent : {0.1, 1.0, 25.0, 50.0, 99.0, 99.9, 100.0}) {
    const auto rank = static_cast<size_t>(percent / 100 * 5000 + 0.5);
    const uint64_t exact = all[std::max<size_t>(rank, 1) - 1];
    CHECK_EQ(LatencyHistogram::bucket_of(sum.percentile_ns(percent)),
             LatencyHistogram::bucket_of(exact));
  }
  CHECK_EQ(LatencyHistogram::bucket_of(sum.percentile_ns(0)),
           LatencyHistogram::bucket_of(all.front()));
  for (const uint64_t bound : {1024U, 65536U, 1048576U}) {
    const uint64_t highest = LatencyHistogram::highest_ns(LatencyHistogram::bucket_of(bound));
    CHECK_EQ(sum.count_up_to(bound),
             std::upper_bound(all.begin(), all.end(), highest) - all.begin());
  }
  one.reset();
  other.reset();
  LatencySum nothing;
  nothing.add(one);
  nothing.add(other);
  CHECK_EQ(nothing.count(), 0);
}

TEST_CASE("what takes longer than a second counts as a second, however long") {
  CommandStat stat;
  const uint64_t scale = uint64_t{1} << CommandStat::kScaleBits;  // a tick is a nanosecond
  stat.add_latency(5, 0);
  CHECK_EQ(stat.latencies.load(), nullptr);
  stat.add_latency(UINT64_MAX, scale);
  stat.add_latency(2'000'000'000, scale);
  LatencySum sum;
  sum.add(*stat.latencies.load());
  CHECK_EQ(sum.count(), 2);
  CHECK_EQ(sum.count_up_to(LatencyHistogram::kMostNs - 10'000'000), 0);
  CHECK_EQ(sum.count_up_to(LatencyHistogram::kMostNs), 2);
}

TEST_CASE("errors are counted by their codes, the total also beyond the most kinds") {
  ErrorCounts counts;
  counts.add("ERR a");
  counts.add("ERR b");
  counts.add("WRONGTYPE c");
  counts.add("nothing");
  for (size_t i = 0; i < 2 * ErrorCounts::kMostKinds; ++i) {
    counts.add("E" + std::to_string(i) + " text");
  }
  std::map<std::string, uint64_t> kinds;
  counts.add_to(kinds);
  CHECK_EQ(kinds["ERR"], 3);
  CHECK_EQ(kinds["WRONGTYPE"], 1);
  CHECK_EQ(kinds["E0"], 1);
  CHECK_EQ(kinds.size(), ErrorCounts::kMostKinds);
  CHECK_EQ(counts.total(), 4 + 2 * ErrorCounts::kMostKinds);
  counts.reset();
  kinds.clear();
  counts.add_to(kinds);
  CHECK(kinds.empty());
  CHECK_EQ(counts.total(), 0);
}

}  // namespace
}  // namespace sluice
