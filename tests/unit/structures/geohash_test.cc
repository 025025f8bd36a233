// Places as scores: known ones, decoding, and searches compared with a check of every place.
#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "engine/structures/front_sort.h"
#include "engine/structures/geohash.h"
#include "tests/support/seeds.h"
#include "tests/support/test.h"

namespace sluice::test {

namespace {

using geohash::Place;
using geohash::Shape;

double between(std::mt19937_64& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}

}  // namespace

TEST_CASE("Palermo and Catania have Redis's scores, texts and distance") {
  const Place palermo{13.361389, 38.115556};
  const Place catania{15.087269, 37.502669};
  CHECK_EQ(geohash::encode(palermo), 3479099956230698);
  CHECK_EQ(geohash::encode(catania), 3479447370796909);
  const Place decoded = geohash::decode(3479099956230698);
  CHECK_EQ(geohash::text_of(decoded), "sqc8b49rny0");
  CHECK_EQ(decoded.longitude, 13.36138933897018433);
  CHECK_EQ(decoded.latitude, 38.11555639549629859);
  CHECK(std::abs(geohash::distance_m(decoded, geohash::decode(3479447370796909)) - 166274.1516) <
        0.0001);
}

TEST_CASE("a place is decoded within a cell of 0.6 m, and any score is some place") {
  const uint64_t seed = testing::seeds(1, 23)[0];
  testing::use_seed(seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 2000; ++i) {
    const Place place{between(random, -180, 180),
                      between(random, -geohash::kMaxLatitude, geohash::kMaxLatitude)};
    const Place decoded = geohash::decode(static_cast<double>(geohash::encode(place)));
    CHECK(geohash::distance_m(place, decoded) < 0.6);
  }
  for (const double score : {-1.0, 1e300, -1e300, 1.0 / 0.0, -1.0 / 0.0, 0.5, 1e19}) {
    CHECK(geohash::can_encode(geohash::decode(score)));
  }
  CHECK_FALSE(geohash::can_encode({180.1, 0}));
  CHECK_FALSE(geohash::can_encode({0, 85.06}));
  CHECK_FALSE(geohash::can_encode({0, std::nan("")}));
}

TEST_CASE("the ranges of a shape hold every place within it, and do not overlap") {
  const uint64_t seed = testing::seeds(1, 23)[0];
  testing::use_seed(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 300; ++round) {
    Shape shape;
    shape.center = {between(random, -150, 150), between(random, -60, 60)};
    shape.unit_m = 1000;
    shape.is_box = round % 2 == 0;
    shape.radius = std::pow(10, between(random, -3, 3));
    shape.width = shape.radius * between(random, 0.1, 2);
    shape.height = shape.radius * between(random, 0.1, 2);
    auto ranges = geohash::cover(shape);
    CHECK(ranges.size() <= 9);
    const double degrees = shape.radius / 50;
    for (int i = 0; i < 50; ++i) {
      const Place place{
          std::clamp(shape.center.longitude + between(random, -degrees, degrees), -180.0, 180.0),
          std::clamp(shape.center.latitude + between(random, -degrees, degrees), -85.0, 85.0)};
      const auto score = static_cast<double>(geohash::encode(place));
      if (!geohash::distance_within(shape, geohash::decode(score))) continue;
      CHECK(std::any_of(ranges.begin(), ranges.end(), [&](const geohash::ScoreRange& range) {
        return score >= range.low && score < range.high;
      }));
    }
    std::sort(ranges.begin(), ranges.end(),
              [](const auto& a, const auto& b) { return a.low < b.low; });
    for (size_t i = 1; i < ranges.size(); ++i) CHECK(ranges[i - 1].high <= ranges[i].low);
  }
}

TEST_CASE("near a pole and beside the 180th meridian a circle holds every place within it") {
  const uint64_t seed = testing::seeds(1, 23)[0];
  testing::use_seed(seed);
  std::mt19937_64 random(seed);
  constexpr double kKmPerDegree = 111.2;
  for (int round = 0; round < 2000; ++round) {
    const bool near_pole = round % 2 == 0;
    Shape shape;
    shape.unit_m = 1000;
    shape.radius = std::pow(10, between(random, -2, 1));
    shape.center.latitude = near_pole ? between(random, 76, 84.9) : between(random, 0, 60);
    if (round % 4 >= 2) shape.center.latitude *= -1;
    const double rows = shape.radius / kKmPerDegree;
    const double columns = rows / std::cos(shape.center.latitude * 3.14159265 / 180);
    shape.center.longitude =
        near_pole ? between(random, -170, 170) : 180 - between(random, 0, 1) * columns;
    if (round % 8 >= 4) shape.center.longitude *= -1;
    const auto ranges = geohash::cover(shape);
    for (int i = 0; i < 40; ++i) {
      // Half of the places are where the circle is widest.
      const bool widest = i % 2 == 0;
      const double across = widest ? between(random, 0.95, 1) : between(random, 0, 1);
      const double along = between(random, -1, 1) * (widest ? 0.2 : 1);
      Place place{shape.center.longitude + (i % 4 < 2 ? across : -across) * columns,
                  std::clamp(shape.center.latitude + along * rows, -85.05, 85.05)};
      if (place.longitude > 180) place.longitude -= 360;
      if (place.longitude < -180) place.longitude += 360;
      const auto score = static_cast<double>(geohash::encode(place));
      if (!geohash::distance_within(shape, geohash::decode(score))) continue;
      CHECK(std::any_of(ranges.begin(), ranges.end(), [&](const geohash::ScoreRange& range) {
        return score >= range.low && score < range.high;
      }));
    }
  }
}

TEST_CASE("the front of a sort is that of a whole sort") {
  const uint64_t seed = testing::seeds(1, 23)[0];
  testing::use_seed(seed);
  std::mt19937_64 random(seed);
  const auto compare = [](int a, int b) { return a < b ? -1 : (a > b ? 1 : 0); };
  for (int round = 0; round < 2000; ++round) {
    std::vector<int> all(1 + random() % 200);
    const int values = round % 2 == 0 ? 10 : 100'000;
    for (int& each : all) each = static_cast<int>(random() % static_cast<uint64_t>(values));
    std::vector<int> sorted = all;
    std::sort(sorted.begin(), sorted.end());
    const size_t count = 1 + random() % all.size();
    FrontSort<int, decltype(compare)>(compare).run(all, count);
    CHECK(std::equal(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(count),
                     all.begin()));
    std::sort(all.begin(), all.end());
    CHECK(all == sorted);
  }
}

}  // namespace sluice::test
