// Places on the earth as scores of a sorted set: 52 bits, alternately of longitude and latitude (a
// geohash), so that near places mostly have near scores. All numbers equal Redis's to the last bit:
// ranges, the radius of the earth, the order of the operations.
//
// Degrees and metres are doubles; latitudes end at those of Mercator's map. Any double may be a
// score in a sorted set, so a score that no place has decodes to some place. Pure functions;
// thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sluice::geohash {

struct Place {
  double longitude = 0;
  double latitude = 0;
};

// The limits, in degrees, of the places that can be encoded.
inline constexpr double kMaxLongitude = 180;
inline constexpr double kMaxLatitude = 85.05112878;
bool can_encode(const Place& place);

// REQUIRES: can_encode(place). At most 2^54.
uint64_t encode(const Place& place);
// The middle of the score's cell.
Place decode(double score);
// The eleven characters of the standard geohash, whose latitudes end at the poles.
std::string text_of(const Place& place);

// The distance along the surface of a sphere.
double distance_m(const Place& from, const Place& to);

// The area of a search: a circle, or a box whose sides point north.
struct Shape {
  Place center;
  bool is_box = false;
  double radius = 0;  // in units
  double width = 0;   // of a box, in units
  double height = 0;
  double unit_m = 1;
};
// The distance from the center of a place within the shape; nothing for a place outside.
std::optional<double> distance_within(const Shape& shape, const Place& place);

// Scores from `low` (included) to `high` (excluded).
struct ScoreRange {
  double low = 0;
  double high = 0;
};
// At most nine disjoint ranges in the order in which they are searched. They contain all scores
// within the shape, except for shapes that cover a large part of the earth. REQUIRES:
// can_encode(shape.center).
std::vector<ScoreRange> cover(const Shape& shape);

}  // namespace sluice::geohash
