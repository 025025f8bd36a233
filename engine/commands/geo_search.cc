// Searches among places: GEOSEARCH, GEOSEARCHSTORE and their older names.
#include <algorithm>
#include <string>

#include "engine/commands/geo.h"
#include "engine/commands/geo_args.h"
#include "engine/commands/sorted_sets.h"
#include "engine/structures/front_sort.h"

namespace sluice {

namespace {

enum class Form : uint8_t {
  kRadius,
  kRadiusReadOnly,
  kByMember,
  kByMemberReadOnly,
  kSearch,
  kStore
};
enum class Sorting : uint8_t { kNone, kAscending, kDescending };

struct GeoSearchRequest {
  Form form = Form::kSearch;
  const SortedSet* sorted = nullptr;  // null: the key does not exist
  geohash::Shape shape;
  bool from_member = false;
  bool from_place = false;
  bool by_radius = false;
  bool by_box = false;
  bool with_distance = false;
  bool with_hash = false;
  bool with_place = false;
  Sorting sorting = Sorting::kNone;
  int64_t count = 0;  // 0: all
  bool any = false;
  size_t store = 0;  // the argument with the destination; 0: none
  bool store_distances = false;

  bool is_search() const { return form == Form::kSearch || form == Form::kStore; }
  bool may_store() const { return form == Form::kRadius || form == Form::kByMember; }
};

struct FoundPoint {
  std::string member;
  geohash::Place place;
  double distance = 0;  // in metres
  double score = 0;
};

bool parse_radius(const Call& call, size_t argument, geohash::Shape& shape) {
  if (!call.real(argument, shape.radius, "ERR need numeric radius")) return false;
  if (shape.radius < 0) return fail(call, "ERR radius cannot be negative");
  return parse_unit(call, argument + 1, shape.unit_m);
}

bool parse_box(const Call& call, size_t argument, geohash::Shape& shape) {
  shape.is_box = true;
  if (!call.real(argument, shape.width, "ERR need numeric width") ||
      !call.real(argument + 1, shape.height, "ERR need numeric height")) {
    return false;
  }
  if (shape.width < 0 || shape.height < 0) {
    return fail(call, "ERR height or width cannot be negative");
  }
  return parse_unit(call, argument + 2, shape.unit_m);
}

// If the key does not exist, the member is not checked.
bool parse_member(const Call& call, size_t argument, GeoSearchRequest& request) {
  if (request.sorted == nullptr) return true;
  const auto place = find_place(*request.sorted, call.args[argument]);
  if (!place) return fail(call, "ERR could not decode requested zset member");
  request.shape.center = *place;
  return true;
}

// Parses the arguments before the options; `first` is the first option.
bool parse_fixed(const Call& call, GeoSearchRequest& request, size_t& first) {
  switch (request.form) {
    case Form::kRadius:
    case Form::kRadiusReadOnly:
      first = 6;
      return parse_place(call, 2, request.shape.center) && parse_radius(call, 4, request.shape);
    case Form::kByMember:
    case Form::kByMemberReadOnly:
      first = 5;
      return request.sorted == nullptr ||
             (parse_member(call, 2, request) && parse_radius(call, 3, request.shape));
    case Form::kSearch:
      first = 2;
      return true;
    case Form::kStore:
      first = 3;
      request.store = 1;
      return true;
  }
  return false;
}

enum class Option : uint8_t { kTaken, kFailed, kUnknown };

// Takes an option that only GEOSEARCH and GEOSEARCHSTORE have; `at` ends at its last word.
Option take_search_option(const Call& call, size_t& at, GeoSearchRequest& request) {
  const size_t left = call.args.size() - at - 1;
  bool good = true;
  if (call.option(at, "FROMMEMBER") && left >= 1 && !request.from_place) {
    request.from_member = true;
    good = parse_member(call, at + 1, request);
    at += 1;
  } else if (call.option(at, "FROMLONLAT") && left >= 2 && !request.from_member) {
    request.from_place = true;
    good = parse_place(call, at + 1, request.shape.center);
    at += 2;
  } else if (call.option(at, "BYRADIUS") && left >= 2 && !request.by_box) {
    request.by_radius = true;
    good = parse_radius(call, at + 1, request.shape);
    at += 2;
  } else if (call.option(at, "BYBOX") && left >= 3 && !request.by_radius) {
    request.by_box = true;
    good = parse_box(call, at + 1, request.shape);
    at += 3;
  } else if (call.option(at, "STOREDIST") && request.form == Form::kStore) {
    request.store_distances = true;
  } else {
    return Option::kUnknown;
  }
  return good ? Option::kTaken : Option::kFailed;
}

Option take_option(const Call& call, size_t& at, GeoSearchRequest& request) {
  const bool has_next = at + 1 < call.args.size();
  if (call.option(at, "WITHDIST")) {
    request.with_distance = true;
  } else if (call.option(at, "WITHHASH")) {
    request.with_hash = true;
  } else if (call.option(at, "WITHCOORD")) {
    request.with_place = true;
  } else if (call.option(at, "ANY")) {
    request.any = true;
  } else if (call.option(at, "ASC")) {
    request.sorting = Sorting::kAscending;
  } else if (call.option(at, "DESC")) {
    request.sorting = Sorting::kDescending;
  } else if (call.option(at, "COUNT") && has_next) {
    if (!call.integer(++at, request.count)) return Option::kFailed;
    if (request.count <= 0) {
      call.reply.error("ERR COUNT must be > 0");
      return Option::kFailed;
    }
  } else if (request.may_store() && has_next &&
             (call.option(at, "STORE") || call.option(at, "STOREDIST"))) {
    request.store_distances = call.option(at, "STOREDIST");
    request.store = ++at;
  } else {
    return request.is_search() ? take_search_option(call, at, request) : Option::kUnknown;
  }
  return Option::kTaken;
}

bool parse_options(const Call& call, size_t first, GeoSearchRequest& request) {
  for (size_t at = first; at < call.args.size(); ++at) {
    switch (take_option(call, at, request)) {
      case Option::kTaken:
        break;
      case Option::kFailed:
        return false;
      case Option::kUnknown:
        return fail(call, errors::kSyntax);
    }
  }
  const std::string name(call.args[0]);
  if (request.store != 0 && (request.with_distance || request.with_hash || request.with_place)) {
    return fail(call, "ERR " +
                          std::string(request.form == Form::kStore ? "GEOSEARCHSTORE"
                                                                   : "STORE option in GEORADIUS") +
                          " is not compatible with WITHDIST, WITHHASH and WITHCOORD options");
  }
  if (request.is_search() && !request.from_member && !request.from_place) {
    return fail(call, "ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for " + name);
  }
  if (request.is_search() && !request.by_radius && !request.by_box) {
    return fail(call, "ERR exactly one of BYRADIUS and BYBOX can be specified for " + name);
  }
  if (request.any && request.count == 0) {
    return fail(call, "ERR the ANY argument requires COUNT argument");
  }
  return true;
}

// Members within the shape, in the order of the ranges and of scores. ANY stops the search early.
std::vector<FoundPoint> search(const GeoSearchRequest& request) {
  std::vector<FoundPoint> found;
  const size_t limit = request.any ? static_cast<size_t>(request.count) : SIZE_MAX;
  for (const geohash::ScoreRange& range : geohash::cover(request.shape)) {
    for (auto at = request.sorted->order.lower_bound(SortedSet::major(range.low));
         at.valid() && at.value()->score() < range.high; at.next()) {
      const ScoredMember* member = at.value();
      const geohash::Place place = geohash::decode(member->score());
      const auto distance = geohash::distance_within(request.shape, place);
      if (!distance) continue;
      found.push_back({std::string(member->bytes()), place, *distance, member->score()});
      if (found.size() >= limit) return found;
    }
  }
  return found;
}

// Sorts the result if that is requested or implied, and truncates it to COUNT.
void sort_and_cut(const GeoSearchRequest& request, std::vector<FoundPoint>& found) {
  const size_t count = request.count == 0
                           ? found.size()
                           : std::min(found.size(), static_cast<size_t>(request.count));
  const auto compare = [&](const FoundPoint& a, const FoundPoint& b) {
    const int order = a.distance > b.distance ? 1 : (a.distance == b.distance ? 0 : -1);
    return request.sorting == Sorting::kDescending ? -order : order;
  };
  // COUNT without ANY means the nearest ones.
  const bool nearest = request.count != 0 && !request.any;
  if (request.sorting != Sorting::kNone || nearest) {
    if (count == found.size()) {
      std::stable_sort(found.begin(), found.end(),
                       [&](const FoundPoint& a, const FoundPoint& b) { return compare(a, b) < 0; });
    } else {
      FrontSort<FoundPoint, decltype(compare)>(compare).run(found, count);
    }
  }
  found.resize(count);
}

// Converts a score as x86-64 does if it does not fit.
int64_t whole_score(double score) {
  constexpr double kLimit = 9223372036854775808.0;  // 2^63
  return score >= -kLimit && score < kLimit ? static_cast<int64_t>(score) : INT64_MIN;
}

void reply_found(Call& call, const GeoSearchRequest& request,
                 const std::vector<FoundPoint>& found) {
  const size_t more = (request.with_distance ? 1U : 0U) + (request.with_hash ? 1U : 0U) +
                      (request.with_place ? 1U : 0U);
  call.reply.array(found.size());
  for (const FoundPoint& each : found) {
    if (more != 0) call.reply.array(1 + more);
    call.reply.bulk(each.member);
    if (request.with_distance) reply_distance(call, each.distance / request.shape.unit_m);
    if (request.with_hash) call.reply.integer(whole_score(each.score));
    if (request.with_place) reply_place(call, each.place);
  }
}

void search_generic(Call& call, Form form) {
  GeoSearchRequest request;
  request.form = form;
  const Found<const Entry> entry =
      call.read(call.key(form == Form::kStore ? 2 : 1), Type::kSortedSet);
  if (entry.refused()) return;
  if (entry != nullptr) request.sorted = &entry->object<SortedSet>();
  size_t first = 0;
  if (!parse_fixed(call, request, first) || !parse_options(call, first, request)) return;
  std::vector<FoundPoint> found;
  if (request.sorted != nullptr) found = search(request);
  sort_and_cut(request, found);
  if (request.store == 0) return reply_found(call, request, found);
  std::vector<std::pair<std::string, double>> result;
  for (FoundPoint& each : found) {
    const double score =
        request.store_distances ? each.distance / request.shape.unit_m : each.score;
    result.emplace_back(std::move(each.member), score);
  }
  store_scored_members(
      call, request.store, result,
      form == Form::kStore ? KeyEvent::kGeoSearchStore : KeyEvent::kGeoRadiusStore);
}

void find_destination(std::span<const Bytes> args, size_t first,
                      std::vector<KeyPosition>& positions) {
  size_t destination = 0;
  for (size_t at = first; at + 1 < args.size(); ++at) {
    const bool stores =
        equals_ignore_case(args[at], "STORE") || equals_ignore_case(args[at], "STOREDIST");
    if (!stores && !equals_ignore_case(args[at], "COUNT")) continue;
    ++at;
    if (stores) destination = at;
  }
  const bool known = std::any_of(positions.begin(), positions.end(),
                                 [&](const KeyPosition& key) { return key.index == destination; });
  if (destination != 0 && !known) positions.push_back({destination, kKeyOw | kKeyUpdate});
}

}  // namespace

void georadius_command(Call& call) { search_generic(call, Form::kRadius); }
void georadius_ro_command(Call& call) { search_generic(call, Form::kRadiusReadOnly); }
void georadiusbymember_command(Call& call) { search_generic(call, Form::kByMember); }
void georadiusbymember_ro_command(Call& call) { search_generic(call, Form::kByMemberReadOnly); }
void geosearch_command(Call& call) { search_generic(call, Form::kSearch); }
void geosearchstore_command(Call& call) { search_generic(call, Form::kStore); }

void find_georadius_destination(std::span<const Bytes> args, std::vector<KeyPosition>& positions) {
  find_destination(args, 6, positions);
}
void find_georadiusbymember_destination(std::span<const Bytes> args,
                                        std::vector<KeyPosition>& positions) {
  find_destination(args, 5, positions);
}

}  // namespace sluice
