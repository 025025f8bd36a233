// Sorted sets: union, intersection and difference, of sorted sets and of plain sets (score 1).
#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "engine/base/numbers.h"
#include "engine/commands/sets.h"
#include "engine/commands/sorted_sets.h"
#include "engine/execution/call.h"
#include "engine/execution/refusal.h"

namespace sluice {

namespace {

enum class Aggregate : uint8_t { kSum, kMin, kMax };

struct Source {
  const Entry* entry = nullptr;  // a set, a sorted set, or absent
  double weight = 1;

  size_t size() const { return entry == nullptr ? 0 : collection_size(*entry); }

  // The score of a member before weighting, or nothing.
  std::optional<double> score(Bytes member) const {
    if (entry == nullptr) return std::nullopt;
    if (entry->type() == Type::kSet) {
      return entry->object<Set>().members.find(member, hash_bytes(member)) == nullptr
                 ? std::nullopt
                 : std::optional<double>(1);
    }
    const ScoredMember* found = entry->object<SortedSet>().members.find(member, hash_bytes(member));
    return found == nullptr ? std::nullopt : std::optional<double>(found->score());
  }

  template <class Visit>
  void for_each(Visit visit) const {
    if (entry == nullptr) return;
    if (entry->type() == Type::kSet) {
      entry->object<Set>().members.for_each([&](Member* member) { visit(member->bytes(), 1.0); });
    } else {
      entry->object<SortedSet>().members.for_each(
          [&](ScoredMember* member) { visit(member->bytes(), member->score()); });
    }
  }
};

struct AlgebraRequest {
  SetOperation operation = SetOperation::kUnion;
  Aggregate aggregate = Aggregate::kSum;
  bool store = false;
  bool cardinality = false;
  bool with_scores = false;
  uint64_t limit = 0;  // of ZINTERCARD; 0: no limit
  std::vector<Source> sources;
};

bool parse_weights(const Call& call, size_t& at, AlgebraRequest& request) {
  if (call.args.size() - at - 1 < request.sources.size()) return fail(call, errors::kSyntax);
  for (Source& source : request.sources) {
    const auto weight = parse_double(call.args[++at]);
    if (!weight) return fail(call, "ERR weight value is not a float");
    source.weight = *weight;
  }
  return true;
}

bool parse_aggregate(const Call& call, size_t& at, AlgebraRequest& request) {
  ++at;
  if (call.option(at, "SUM")) {
    request.aggregate = Aggregate::kSum;
  } else if (call.option(at, "MIN")) {
    request.aggregate = Aggregate::kMin;
  } else if (call.option(at, "MAX")) {
    request.aggregate = Aggregate::kMax;
  } else {
    return fail(call, errors::kSyntax);
  }
  return true;
}

bool parse_options(const Call& call, size_t first, AlgebraRequest& request) {
  const bool combines = request.operation != SetOperation::kDifference && !request.cardinality;
  for (size_t at = first; at < call.args.size(); ++at) {
    const bool has_next = at + 1 < call.args.size();
    if (combines && has_next && call.option(at, "WEIGHTS")) {
      if (!parse_weights(call, at, request)) return false;
    } else if (combines && has_next && call.option(at, "AGGREGATE")) {
      if (!parse_aggregate(call, at, request)) return false;
    } else if (!request.store && !request.cardinality && call.option(at, "WITHSCORES")) {
      request.with_scores = true;
    } else if (request.cardinality && has_next && call.option(at, "LIMIT")) {
      const auto limit = parse_i64(call.args[++at]);
      if (!limit || *limit < 0) return fail(call, "ERR LIMIT can't be negative");
      request.limit = static_cast<uint64_t>(*limit);
    } else {
      return fail(call, errors::kSyntax);
    }
  }
  return true;
}

// Parses `numkeys key [key ...] [options]` from the argument `numkeys_at` on.
bool parse(const Call& call, size_t numkeys_at, AlgebraRequest& request) {
  const auto numkeys = parse_i64(call.args[numkeys_at]);
  if (!numkeys) return fail(call, errors::kNotInteger);
  if (*numkeys < 1) {
    return fail(call, "ERR at least 1 input key is needed for '" + std::string(call.command.name) +
                          "' command");
  }
  if (static_cast<uint64_t>(*numkeys) > call.args.size() - numkeys_at - 1) {
    return fail(call, errors::kSyntax);
  }
  const size_t first = numkeys_at + 1;
  const size_t end = first + static_cast<size_t>(*numkeys);
  for (size_t at = first; at < end; ++at) {
    Source source;
    source.entry = call.read(call.key(at));
    if (source.entry != nullptr && source.entry->type() != Type::kSet &&
        source.entry->type() != Type::kSortedSet) {
      return fail(call, errors::kWrongType);
    }
    request.sources.push_back(source);
  }
  return parse_options(call, end, request);
}

// The first score of a member. As in Redis, inf * 0 counts as 0.
double weighted(double score, double weight) {
  const double value = score * weight;
  return std::isnan(value) ? 0 : value;
}

double combine(Aggregate aggregate, double a, double b) {
  switch (aggregate) {
    case Aggregate::kSum: {
      const double sum = a + b;
      return std::isnan(sum) ? 0 : sum;  // inf - inf
    }
    case Aggregate::kMin:
      return std::min(a, b);
    case Aggregate::kMax:
      return std::max(a, b);
  }
  return a;
}

using ScoredMembers = std::vector<std::pair<std::string, double>>;

// The smallest source comes first, as in Redis: it bounds the work of an intersection, and the
// order affects the rounding of sums.
void order_by_size(AlgebraRequest& request) {
  std::stable_sort(request.sources.begin(), request.sources.end(),
                   [](const Source& a, const Source& b) { return a.size() < b.size(); });
}

ScoredMembers unite(AlgebraRequest& request) {
  order_by_size(request);
  std::unordered_map<std::string, double> scores;
  for (const Source& source : request.sources) {
    source.for_each([&](Bytes member, double score) {
      const double value = weighted(score, source.weight);
      const auto [at, inserted] = scores.emplace(member, value);
      if (!inserted) at->second = combine(request.aggregate, at->second, value);
    });
  }
  return {scores.begin(), scores.end()};
}

ScoredMembers intersect(AlgebraRequest& request) {
  ScoredMembers result;
  order_by_size(request);
  const Source& smallest = request.sources[0];
  bool full = false;
  smallest.for_each([&](Bytes member, double score) {
    if (full) return;
    double value = weighted(score, smallest.weight);
    for (size_t i = 1; i < request.sources.size(); ++i) {
      const Source& source = request.sources[i];
      const auto other = source.score(member);
      if (!other) return;
      // Here inf * 0 stays NaN: it makes a sum 0, and MIN and MAX ignore it.
      value = combine(request.aggregate, value, *other * source.weight);
    }
    result.emplace_back(member, value);
    full = request.limit != 0 && result.size() >= request.limit;
  });
  return result;
}

ScoredMembers subtract(const AlgebraRequest& request) {
  ScoredMembers result;
  request.sources[0].for_each([&](Bytes member, double score) {
    for (size_t i = 1; i < request.sources.size(); ++i) {
      if (request.sources[i].score(member)) return;
    }
    result.emplace_back(member, score);
  });
  return result;
}

ScoredMembers compute(AlgebraRequest& request) {
  switch (request.operation) {
    case SetOperation::kUnion:
      return unite(request);
    case SetOperation::kIntersection:
      return intersect(request);
    case SetOperation::kDifference:
      return subtract(request);
  }
  return {};
}

void reply_members(Call& call, const AlgebraRequest& request, ScoredMembers& result) {
  std::sort(result.begin(), result.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second < b.second : a.first < b.first;
  });
  const bool pairs = request.with_scores && call.reply.protocol() == 3;
  call.reply.array(request.with_scores && !pairs ? result.size() * 2 : result.size());
  for (const auto& [member, score] : result) {
    if (pairs) call.reply.array(2);
    call.reply.bulk(member);
    if (request.with_scores) call.reply.number(score);
  }
}

void sorted_set_algebra(Call& call, SetOperation operation) {
  AlgebraRequest request;
  request.operation = operation;
  if (!parse(call, 1, request)) return;
  ScoredMembers result = compute(request);
  reply_members(call, request, result);
}

KeyEvent sorted_set_store_event(SetOperation operation) {
  switch (operation) {
    case SetOperation::kUnion:
      return KeyEvent::kZUnionStore;
    case SetOperation::kIntersection:
      return KeyEvent::kZInterStore;
    case SetOperation::kDifference:
      return KeyEvent::kZDiffStore;
  }
  return KeyEvent::kZUnionStore;
}

void sorted_set_algebra_store(Call& call, SetOperation operation) {
  AlgebraRequest request;
  request.operation = operation;
  request.store = true;
  if (!parse(call, 2, request)) return;
  const ScoredMembers result = compute(request);
  store_scored_members(call, 1, result, sorted_set_store_event(operation));
}

// Redis chooses the encoding of the complete result, and only a listpack turns -0 into 0.
bool fits_listpack(std::span<const std::pair<std::string, double>> result) {
  return result.size() <= g_encoding_limits.sorted_listpack_entries &&
         std::all_of(result.begin(), result.end(), [](const auto& item) {
           return item.first.size() <= g_encoding_limits.sorted_listpack_value_bytes;
         });
}

}  // namespace

bool journal_takes_scored(const Call& call, Bytes key,
                          std::span<const std::pair<std::string, double>> result) {
  return journal_takes(call, key, result.size(), [&] {
    uint64_t bytes = result.size() * sizeof(double);
    for (const auto& [member, score] : result) bytes += member.size();
    return bytes;
  });
}

void store_scored_members(Call& call, size_t argument,
                          std::span<const std::pair<std::string, double>> result, KeyEvent event) {
  const KeyRef key(call.args[argument]);
  if (!journal_takes_scored(call, key.key, result)) return;
  Database database = call.database(key);
  Entry* old = database.find(key);
  const bool changes = !result.empty() || old != nullptr;
  const bool of_geo = event == KeyEvent::kGeoSearchStore || event == KeyEvent::kGeoRadiusStore;
  if (!result.empty()) {
    Entry* entry = database.create(key, Type::kSortedSet, old);
    entry->object<SortedSet>().listpack = fits_listpack(result);
    for (const auto& [member, score] : result) {
      database.sorted_put(key, entry, nullptr, member, score);
    }
  } else if (old != nullptr) {
    database.remove(key, old);
    event = KeyEvent::kDel;
  }
  // A connection that hears of its own change sees GEO's events before the reply, others after it.
  if (changes && of_geo) database.notify(event, key.key);
  call.reply.integer(static_cast<int64_t>(result.size()));
  if (changes && !of_geo) database.notify(event, key.key);
}

void zunion_command(Call& call) { sorted_set_algebra(call, SetOperation::kUnion); }
void zinter_command(Call& call) { sorted_set_algebra(call, SetOperation::kIntersection); }
void zdiff_command(Call& call) { sorted_set_algebra(call, SetOperation::kDifference); }
void zunionstore_command(Call& call) { sorted_set_algebra_store(call, SetOperation::kUnion); }
void zinterstore_command(Call& call) {
  sorted_set_algebra_store(call, SetOperation::kIntersection);
}
void zdiffstore_command(Call& call) { sorted_set_algebra_store(call, SetOperation::kDifference); }

void zintercard_command(Call& call) {
  AlgebraRequest request;
  request.operation = SetOperation::kIntersection;
  request.cardinality = true;
  if (!parse(call, 1, request)) return;
  call.reply.integer(static_cast<int64_t>(compute(request).size()));
}

}  // namespace sluice
