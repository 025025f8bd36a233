// Places on the earth as scores of a sorted set: 52 bits of which longitude and latitude take turns
// (a geohash), so that places which are near each other mostly have near scores. The numbers are
// Redis's to the last bit: ranges, the radius of the earth, the order of the operations.
//
// Degrees and metres are doubles; latitudes end at those of Mercator's map. A score that no place
// has (any double may be in a sorted set) decodes to some place all the same. Pure functions; any
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::geohash {

struct Place {
  double longitude = 0;
  double latitude = 0;
};

// Degrees within which a place can be encoded.
inline constexpr double kMaxLongitude = 180;
inline constexpr double kMaxLatitude = 85.05112878;
bool can_encode(const Place& place);

// REQUIRES: can_encode(place). At most 2^54.
uint64_t encode(const Place& place);
// The middle of the score's cell.
Place decode(double score);
// The eleven characters of the geohash that others know, whose latitudes end at the poles.
std::string text_of(const Place& place);

// Along the surface of a sphere.
double distance_m(const Place& from, const Place& to);

// What is searched: a circle, or a box whose sides look north.
struct Shape {
  Place center;
  bool is_box = false;
  double radius = 0;  // in units
  double width = 0;   // of a box, in units
  double height = 0;
  double unit_m = 1;
};
// Whether the place is within it, and how far from its center.
bool contains(const Shape& shape, const Place& place, double& distance_m);

// Scores from `low` on, below `high`.
struct ScoreRange {
  double low = 0;
  double high = 0;
};
// At most nine ranges, no two of which overlap, in the order in which they are searched: all scores
// within the shape are in them, but for shapes that are as large as a good part of the earth.
// REQUIRES: can_encode(shape.center).
std::vector<ScoreRange> cover(const Shape& shape);

}  // namespace sluice::geohash
