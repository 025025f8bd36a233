#include "engine/structures/geohash.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>

#include "engine/base/bytes.h"

namespace sluice::geohash {

namespace {

constexpr int kMaxSteps = 26;  // bits of each coordinate
constexpr double kEarthRadiusM = 6372797.560856;
constexpr double kMercatorMaxM = 20037726.37;  // from its middle to its edge
constexpr double kRadians = std::numbers::pi / 180;

double radians(double degrees) { return degrees * kRadians; }
double degrees(double radians) { return radians / kRadians; }

struct Range {
  double low;
  double high;
};
constexpr Range kLongitudes = {-kMaxLongitude, kMaxLongitude};
constexpr Range kLatitudes = {-kMaxLatitude, kMaxLatitude};

// A cell of the grid that has 2^steps columns and rows.
struct Cell {
  uint32_t column = 0;
  uint32_t row = 0;
  int steps = 0;

  bool operator==(const Cell&) const = default;
};

// Interleaves the bits of a number with zeros.
uint64_t spread(uint32_t number) {
  uint64_t bits = number;
  bits = (bits | bits << 16) & 0x0000ffff0000ffff;
  bits = (bits | bits << 8) & 0x00ff00ff00ff00ff;
  bits = (bits | bits << 4) & 0x0f0f0f0f0f0f0f0f;
  bits = (bits | bits << 2) & 0x3333333333333333;
  return (bits | bits << 1) & 0x5555555555555555;
}

uint32_t gather(uint64_t bits) {
  bits &= 0x5555555555555555;
  bits = (bits | bits >> 1) & 0x3333333333333333;
  bits = (bits | bits >> 2) & 0x0f0f0f0f0f0f0f0f;
  bits = (bits | bits >> 4) & 0x00ff00ff00ff00ff;
  bits = (bits | bits >> 8) & 0x0000ffff0000ffff;
  return static_cast<uint32_t>(bits | bits >> 16);
}

uint64_t bits_of(const Cell& cell) { return spread(cell.row) | spread(cell.column) << 1; }
Cell cell_of(uint64_t bits, int steps) { return {gather(bits >> 1), gather(bits), steps}; }

uint32_t position(double value, const Range& range, int steps) {
  const double offset = (value - range.low) / (range.high - range.low);
  return static_cast<uint32_t>(offset * static_cast<double>(uint64_t{1} << steps));
}

Cell cell_at(const Place& place, const Range& latitudes, int steps) {
  return {position(place.longitude, kLongitudes, steps), position(place.latitude, latitudes, steps),
          steps};
}

Range edges(uint32_t at, const Range& range, int steps) {
  const auto cells = static_cast<double>(uint64_t{1} << steps);
  const double scale = range.high - range.low;
  return {range.low + at * 1.0 / cells * scale, range.low + (at + 1U) * 1.0 / cells * scale};
}
Range longitudes_of(const Cell& cell) { return edges(cell.column, kLongitudes, cell.steps); }
Range latitudes_of(const Cell& cell) { return edges(cell.row, kLatitudes, cell.steps); }

// The neighbouring cell. The grid wraps around at its borders.
Cell neighbor(Cell cell, int columns, int rows) {
  const uint32_t mask = (1U << cell.steps) - 1;
  if (columns != 0) cell.column = (cell.column + static_cast<uint32_t>(columns)) & mask;
  if (rows != 0) cell.row = (cell.row + static_cast<uint32_t>(rows)) & mask;
  return cell;
}

// Converts a score as x86-64 converts a double that may be out of range. Redis relies on that.
uint64_t bits_of(double score) {
  constexpr double kHalf = 9223372036854775808.0;  // 2^63
  const auto convert = [](double number) {
    const bool fits = number >= -kHalf && number < kHalf;
    return fits ? static_cast<uint64_t>(static_cast<int64_t>(number)) : uint64_t{1} << 63;
  };
  return score < kHalf ? convert(score) : convert(score - kHalf) ^ uint64_t { 1 } << 63;
}

// The precision of the grid at which nine cells cover a circle around the place.
int estimate_steps(double radius_m, double latitude) {
  if (radius_m == 0) return kMaxSteps;
  int steps = 1;
  for (; radius_m < kMercatorMaxM; radius_m *= 2) ++steps;
  steps -= 2;
  // Towards the poles a degree of longitude becomes shorter.
  if (std::abs(latitude) > 66) --steps;
  if (std::abs(latitude) > 80) --steps;
  return std::clamp(steps, 1, kMaxSteps);
}

struct Bounds {
  Range longitudes;
  Range latitudes;
};

Bounds bounds_of(const Shape& shape) {
  const double height = shape.unit_m * (shape.is_box ? shape.height / 2 : shape.radius);
  const double width = shape.unit_m * (shape.is_box ? shape.width / 2 : shape.radius);
  const double latitude = shape.center.latitude;
  const double longitude = shape.center.longitude;
  const double rows = degrees(height / kEarthRadiusM);
  // Degrees of longitude are shorter on the side that is farther from the equator.
  const double far_latitude = latitude < 0 ? latitude - rows : latitude + rows;
  const double columns = degrees(width / kEarthRadiusM / std::cos(radians(far_latitude)));
  return {{longitude - columns, longitude + columns}, {latitude - rows, latitude + rows}};
}

// Whether one of the cells beside the middle ends inside the shape.
bool too_fine(const Cell& middle, const Bounds& bounds) {
  return latitudes_of(neighbor(middle, 0, 1)).high < bounds.latitudes.high ||
         latitudes_of(neighbor(middle, 0, -1)).low > bounds.latitudes.low ||
         longitudes_of(neighbor(middle, 1, 0)).high < bounds.longitudes.high ||
         longitudes_of(neighbor(middle, -1, 0)).low > bounds.longitudes.low;
}

ScoreRange scores_of(const Cell& cell) {
  const uint64_t bits = bits_of(cell);
  const int shift = 2 * (kMaxSteps - cell.steps);
  return {static_cast<double>(bits << shift), static_cast<double>((bits + 1) << shift)};
}

struct Direction {
  int columns;
  int rows;
};
// The middle and its neighbours: north, south, east, west, north-east, north-west, south-east,
// south-west.
constexpr std::array<Direction, 9> kDirections = {
    {{0, 0}, {0, 1}, {0, -1}, {1, 0}, {-1, 0}, {1, 1}, {-1, 1}, {1, -1}, {-1, -1}}};

}  // namespace

bool can_encode(const Place& place) {
  return place.longitude >= -kMaxLongitude && place.longitude <= kMaxLongitude &&
         place.latitude >= -kMaxLatitude && place.latitude <= kMaxLatitude;
}

uint64_t encode(const Place& place) { return bits_of(cell_at(place, kLatitudes, kMaxSteps)); }

Place decode(double score) {
  const Cell cell = cell_of(bits_of(score), kMaxSteps);
  const Range longitudes = longitudes_of(cell);
  const Range latitudes = latitudes_of(cell);
  return {std::clamp((longitudes.low + longitudes.high) / 2, -kMaxLongitude, kMaxLongitude),
          std::clamp((latitudes.low + latitudes.high) / 2, -kMaxLatitude, kMaxLatitude)};
}

std::string text_of(const Place& place) {
  constexpr Bytes kAlphabet = "0123456789bcdefghjkmnpqrstuvwxyz";
  constexpr int kCharacters = 10;  // of five bits each
  const uint64_t bits = bits_of(cell_at(place, {-90, 90}, kMaxSteps));
  std::string text;
  for (int i = 1; i <= kCharacters; ++i) {
    text.push_back(kAlphabet[bits >> (2 * kMaxSteps - 5 * i) & 31]);
  }
  // Two bits are left. Redis does not show them.
  text.push_back(kAlphabet[0]);
  return text;
}

double distance_m(const Place& from, const Place& to) {
  const double from_latitude = radians(from.latitude);
  const double to_latitude = radians(to.latitude);
  const double u = std::sin((to_latitude - from_latitude) / 2);
  const double v = std::sin((radians(to.longitude) - radians(from.longitude)) / 2);
  return 2.0 * kEarthRadiusM *
         std::asin(std::sqrt(u * u + std::cos(from_latitude) * std::cos(to_latitude) * v * v));
}

std::optional<double> distance_within(const Shape& shape, const Place& place) {
  if (shape.is_box) {
    const Place& center = shape.center;
    const double across = distance_m(place, {center.longitude, place.latitude});
    const double along = distance_m(place, {place.longitude, center.latitude});
    if (across > shape.width * shape.unit_m / 2 || along > shape.height * shape.unit_m / 2) {
      return std::nullopt;
    }
  }
  const double distance = distance_m(shape.center, place);
  if (!shape.is_box && distance > shape.radius * shape.unit_m) return std::nullopt;
  return distance;
}

std::vector<ScoreRange> cover(const Shape& shape) {
  const double half_width = shape.width / 2;
  const double half_height = shape.height / 2;
  const double radius =
      shape.is_box ? std::sqrt(half_width * half_width + half_height * half_height) : shape.radius;
  const Bounds bounds = bounds_of(shape);
  const int steps = estimate_steps(radius * shape.unit_m, shape.center.latitude);
  Cell middle = cell_at(shape.center, kLatitudes, steps);
  if (steps > 1 && too_fine(middle, bounds)) middle = cell_at(shape.center, kLatitudes, steps - 1);
  // Neighbours on a side where the middle itself reaches beyond the shape are skipped.
  const bool all = middle.steps < 2;
  const Range longitudes = longitudes_of(middle);
  const Range latitudes = latitudes_of(middle);
  const bool west = all || !(longitudes.low < bounds.longitudes.low);
  const bool east = all || !(longitudes.high > bounds.longitudes.high);
  const bool south = all || !(latitudes.low < bounds.latitudes.low);
  const bool north = all || !(latitudes.high > bounds.latitudes.high);
  std::vector<ScoreRange> ranges;
  std::optional<Cell> last;  // a coarse grid has the same cell on both sides
  for (const Direction& to : kDirections) {
    if ((to.rows > 0 && !north) || (to.rows < 0 && !south) || (to.columns > 0 && !east) ||
        (to.columns < 0 && !west)) {
      continue;
    }
    const Cell cell = neighbor(middle, to.columns, to.rows);
    if (last == cell) continue;
    last = cell;
    ranges.push_back(scores_of(cell));
  }
  return ranges;
}

}  // namespace sluice::geohash
