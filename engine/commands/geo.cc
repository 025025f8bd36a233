// Places as members of sorted sets: adding, reading, distances. Searches are in geo_search.cc.
#include "engine/commands/geo.h"

#include <cstdio>

#include "engine/commands/geo_args.h"
#include "engine/commands/sorted_sets.h"

namespace sluice {

bool parse_place(const Call& call, size_t argument, geohash::Place& place) {
  if (!call.real(argument, place.longitude) || !call.real(argument + 1, place.latitude)) {
    return false;
  }
  if (geohash::can_encode(place)) return true;
  char text[2 * 320 + 64];  // the largest doubles have 309 digits before their point
  const int length = std::snprintf(text, sizeof(text), "ERR invalid longitude,latitude pair %f,%f",
                                   place.longitude, place.latitude);
  return fail(call, {text, static_cast<size_t>(length)});
}

bool parse_unit(const Call& call, size_t argument, double& unit_m) {
  static constexpr struct {
    Bytes name;
    double metres;
  } kUnits[] = {{"M", 1}, {"KM", 1000}, {"FT", 0.3048}, {"MI", 1609.34}};
  for (const auto& [name, metres] : kUnits) {
    if (!call.option(argument, name)) continue;
    unit_m = metres;
    return true;
  }
  return fail(call, "ERR unsupported unit provided. please use M, KM, FT, MI");
}

std::optional<geohash::Place> find_place(const SortedSet& sorted, Bytes member) {
  const ScoredMember* found = sorted.members.find(member, hash_bytes(member));
  return found != nullptr ? std::optional(geohash::decode(found->score())) : std::nullopt;
}

void reply_place(Call& call, const geohash::Place& place) {
  call.reply.array(2);
  call.reply.decimal(place.longitude);
  call.reply.decimal(place.latitude);
}

void reply_distance(Call& call, double distance) {
  char text[400];
  const int length = std::snprintf(text, sizeof(text), "%.4f", distance);
  call.reply.bulk({text, static_cast<size_t>(length)});
}

void geoadd_command(Call& call) {
  SortedAddOptions options;
  size_t first = 2;
  for (; first < call.args.size(); ++first) {
    if (call.option(first, "NX")) {
      options.if_absent = true;
    } else if (call.option(first, "XX")) {
      options.if_present = true;
    } else if (call.option(first, "CH")) {
      options.count_changed = true;
    } else {
      break;
    }
  }
  const size_t words = call.args.size() - first;
  if (words % 3 != 0 || (options.if_absent && options.if_present)) {
    return call.reply.error(errors::kSyntax);
  }
  std::vector<double> scores;
  for (size_t at = first; at < call.args.size(); at += 3) {
    geohash::Place place;
    if (!parse_place(call, at, place)) return;
    scores.push_back(static_cast<double>(geohash::encode(place)));
  }
  if (scores.empty()) return call.reply.error(errors::kSyntax);
  add_scored_members(call, options, scores, first + 2, 3);
}

void geodist_command(Call& call) {
  double unit_m = 1;
  if (call.args.size() == 5 && !parse_unit(call, 4, unit_m)) return;
  if (call.args.size() > 5) return call.reply.error(errors::kSyntax);
  const Found<const Entry> entry = call.find(call.key(1), Type::kSortedSet);
  if (entry.refused()) return;
  if (entry == nullptr) return call.reply.null();
  const auto from = find_place(entry->object<SortedSet>(), call.args[2]);
  const auto to = find_place(entry->object<SortedSet>(), call.args[3]);
  if (!from || !to) return call.reply.null();
  reply_distance(call, geohash::distance_m(*from, *to) / unit_m);
}

namespace {

// Replies write(place) for each member, or missing() if it does not exist.
template <class Write, class Missing>
void reply_members(Call& call, Write write, Missing missing) {
  const Found<const Entry> entry = call.find(call.key(1), Type::kSortedSet);
  if (entry.refused()) return;
  call.reply.array(call.args.size() - 2);
  for (const Bytes member : call.args.subspan(2)) {
    const auto place =
        entry != nullptr ? find_place(entry->object<SortedSet>(), member) : std::nullopt;
    place ? write(*place) : missing();
  }
}

}  // namespace

void geohash_command(Call& call) {
  reply_members(
      call, [&](const geohash::Place& place) { call.reply.bulk(geohash::text_of(place)); },
      [&] { call.reply.null(); });
}

void geopos_command(Call& call) {
  reply_members(
      call, [&](const geohash::Place& place) { reply_place(call, place); },
      [&] { call.reply.null_array(); });
}

}  // namespace sluice
