// Sorted sets: ranges by rank, score and member: ZRANGE and its older names, counts, stores,
// removals.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "engine/commands/sorted_sets.h"
#include "engine/execution/call.h"
#include "engine/execution/refusal.h"

namespace sluice {

namespace {

enum class By : uint8_t { kRank, kScore, kMember };

// A span of ranks, [first, end).
struct Ranks {
  uint64_t first = 0;
  uint64_t end = 0;
  uint64_t size() const { return end > first ? end - first : 0; }
};

struct ScoreRange {
  double low = 0;
  double high = 0;
  bool low_open = false;
  bool high_open = false;
};

// "-" and "+" are outside of all members.
struct MemberRange {
  Bytes low;
  Bytes high;
  bool low_open = false;
  bool high_open = false;
  int low_infinite = 0;  // -1: "-", 1: "+"
  int high_infinite = 0;
};

bool parse_score_end(Bytes text, double& score, bool& open) {
  open = !text.empty() && text[0] == '(';
  if (open) text.remove_prefix(1);
  // Redis uses plain strtod here: an empty text is zero, and overflow is infinite.
  const std::string copy(text);
  char* stop = nullptr;
  score = std::strtod(copy.c_str(), &stop);
  return *stop == '\0' && !std::isnan(score);
}

bool parse_scores(const Call& call, size_t low, size_t high, ScoreRange& range) {
  if (parse_score_end(call.args[low], range.low, range.low_open) &&
      parse_score_end(call.args[high], range.high, range.high_open)) {
    return true;
  }
  return fail(call, "ERR min or max is not a float");
}

bool parse_member_end(Bytes text, Bytes& member, bool& open, int& infinite) {
  if (text == "-" || text == "+") {
    infinite = text == "-" ? -1 : 1;
    return true;
  }
  if (text.empty() || (text[0] != '(' && text[0] != '[')) return false;
  open = text[0] == '(';
  member = text.substr(1);
  return true;
}

bool parse_members(const Call& call, size_t low, size_t high, MemberRange& range) {
  if (parse_member_end(call.args[low], range.low, range.low_open, range.low_infinite) &&
      parse_member_end(call.args[high], range.high, range.high_open, range.high_infinite)) {
    return true;
  }
  return fail(call, "ERR min or max not valid string range item");
}

Ranks ranks_of(const SortedSet& sorted, const ScoreRange& range) {
  const auto below = [&](double score, bool inclusive) {
    const uint64_t limit = SortedSet::major(score);
    return sorted.order.count_by([&](uint64_t major, uint64_t, ScoredMember*) {
      return inclusive ? major <= limit : major < limit;
    });
  };
  if (range.low > range.high) return {};
  return {below(range.low, range.low_open), below(range.high, !range.high_open)};
}

Ranks ranks_of(const SortedSet& sorted, const MemberRange& range) {
  // All scores are equal where this is used; otherwise Redis's reply is unspecified as well.
  const auto below = [&](Bytes end, int infinite, bool inclusive) -> uint64_t {
    if (infinite != 0) return infinite < 0 ? 0 : sorted.order.size();
    return sorted.order.count_by([&](uint64_t, uint64_t, ScoredMember* member) {
      return inclusive ? member->bytes() <= end : member->bytes() < end;
    });
  };
  return {below(range.low, range.low_infinite, range.low_open),
          below(range.high, range.high_infinite, !range.high_open)};
}

Ranks ranks_of(int64_t start, int64_t stop, uint64_t size) {
  if (!clamp_range(start, stop, static_cast<int64_t>(size))) return {};
  return {static_cast<uint64_t>(start), static_cast<uint64_t>(stop) + 1};
}

struct RangeRequest {
  By by = By::kRank;
  bool reverse = false;
  bool with_scores = false;
  bool has_limit = false;
  int64_t offset = 0;
  int64_t limit = -1;
  int64_t start = 0;
  int64_t stop = 0;
  ScoreRange scores;
  MemberRange members;
};

bool parse_range_options(const Call& call, size_t first, bool store, bool fixed_by,
                         bool fixed_direction, RangeRequest& request) {
  for (size_t at = first; at < call.args.size(); ++at) {
    if (!store && call.option(at, "WITHSCORES")) {
      request.with_scores = true;
    } else if (call.option(at, "LIMIT") && at + 2 < call.args.size()) {
      if (!call.integer(at + 1, request.offset) || !call.integer(at + 2, request.limit)) {
        return false;
      }
      request.has_limit = true;
      at += 2;
    } else if (!fixed_direction && call.option(at, "REV")) {
      request.reverse = true;
      fixed_direction = true;
    } else if (!fixed_by && call.option(at, "BYLEX")) {
      request.by = By::kMember;
      fixed_by = true;
    } else if (!fixed_by && call.option(at, "BYSCORE")) {
      request.by = By::kScore;
      fixed_by = true;
    } else {
      return fail(call, errors::kSyntax);
    }
  }
  if (request.limit != -1 && request.by == By::kRank) {
    return fail(
        call,
        "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX");
  }
  if (request.with_scores && request.by == By::kMember) {
    return fail(call, "ERR syntax error, WITHSCORES not supported in combination with BYLEX");
  }
  return true;
}

bool parse_range_ends(const Call& call, size_t low, size_t high, RangeRequest& request) {
  switch (request.by) {
    case By::kRank:
      return call.integer(low, request.start) && call.integer(high, request.stop);
    case By::kScore:
      // Reversed ranges have the higher end first.
      return request.reverse ? parse_scores(call, high, low, request.scores)
                             : parse_scores(call, low, high, request.scores);
    case By::kMember:
      return request.reverse ? parse_members(call, high, low, request.members)
                             : parse_members(call, low, high, request.members);
  }
  return false;
}

// Ranks in ascending order, in whichever direction they are read.
Ranks select(const SortedSet& sorted, const RangeRequest& request) {
  const uint64_t size = sorted.order.size();
  if (request.by == By::kRank) {
    Ranks ranks = ranks_of(request.start, request.stop, size);
    if (request.reverse && ranks.size() != 0) ranks = {size - ranks.end, size - ranks.first};
    return ranks;
  }
  Ranks ranks = request.by == By::kScore ? ranks_of(sorted, request.scores)
                                         : ranks_of(sorted, request.members);
  if (ranks.size() == 0 || !request.has_limit) return ranks;
  if (request.offset < 0 || static_cast<uint64_t>(request.offset) >= ranks.size()) return {};
  const auto offset = static_cast<uint64_t>(request.offset);
  const uint64_t left = ranks.size() - offset;
  const uint64_t taken =
      request.limit < 0 ? left : std::min<uint64_t>(left, static_cast<uint64_t>(request.limit));
  if (request.reverse) return {ranks.end - offset - taken, ranks.end - offset};
  return {ranks.first + offset, ranks.first + offset + taken};
}

template <class Visit>
void visit(const SortedSet& sorted, const Ranks& ranks, bool reverse, Visit visit_member) {
  uint64_t left = ranks.size();
  if (left == 0) return;
  auto at = sorted.order.at(reverse ? ranks.end - 1 : ranks.first);
  for (; left != 0; --left) {
    visit_member(at.value());
    reverse ? at.prev() : at.next();
  }
}

void range_generic(Call& call, RangeRequest request, bool fixed_by, bool fixed_direction) {
  if (!parse_range_options(call, 4, false, fixed_by, fixed_direction, request)) return;
  if (!parse_range_ends(call, 2, 3, request)) return;
  const Found<const Entry> entry = call.find(call.key(1), Type::kSortedSet);
  if (entry.refused()) return;
  if (entry == nullptr) return call.reply.array(0);
  const SortedSet& sorted = entry->object<SortedSet>();
  const Ranks ranks = select(sorted, request);
  const bool pairs = request.with_scores && call.reply.protocol() == 3;
  call.reply.array(request.with_scores && !pairs ? ranks.size() * 2 : ranks.size());
  visit(sorted, ranks, request.reverse, [&](const ScoredMember* member) {
    if (pairs) call.reply.array(2);
    call.reply.bulk(member->bytes());
    if (request.with_scores) call.reply.number(member->score());
  });
}

void remove_generic(Call& call, By by, KeyEvent event) {
  RangeRequest request;
  request.by = by;
  if (!parse_range_ends(call, 2, 3, request)) return;
  const KeyRef key = call.key(1);
  const Found<Entry> entry = call.find(key, Type::kSortedSet);
  if (entry.refused()) return;
  if (entry == nullptr) return call.reply.integer(0);
  Database database = call.database(key);
  const Ranks ranks = select(entry->object<SortedSet>(), request);
  if (!journal_takes_removal(call, key.key, *entry, ranks.first, ranks.size())) return;
  for (uint64_t i = 0; i < ranks.size(); ++i) {
    const SortedSet& sorted = entry->object<SortedSet>();
    database.sorted_remove(key, entry, sorted.order.at(ranks.first).value());
  }
  if (ranks.size() != 0) database.notify(event, key.key);
  database.remove_if_empty(key, entry);
  call.reply.integer(static_cast<int64_t>(ranks.size()));
}

template <class Range>
void count_generic(Call& call, const Range& range) {
  const Found<const Entry> entry = call.find(call.key(1), Type::kSortedSet);
  if (entry.refused()) return;
  const uint64_t count = entry == nullptr ? 0 : ranks_of(entry->object<SortedSet>(), range).size();
  call.reply.integer(static_cast<int64_t>(count));
}

RangeRequest fixed(By by, bool reverse) {
  RangeRequest request;
  request.by = by;
  request.reverse = reverse;
  return request;
}

}  // namespace

bool journal_takes_removal(const Call& call, Bytes key, const Entry& entry, uint64_t first,
                           uint64_t count) {
  return journal_takes(call, key, count, [&] {
    const auto& order = entry.object<SortedSet>().order;
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < count; ++i) bytes += order.at(first + i).value()->bytes().size();
    return bytes;
  });
}

void zcount_command(Call& call) {
  ScoreRange range;
  if (parse_scores(call, 2, 3, range)) count_generic(call, range);
}

void zlexcount_command(Call& call) {
  MemberRange range;
  if (parse_members(call, 2, 3, range)) count_generic(call, range);
}

void zrange_command(Call& call) { range_generic(call, {}, false, false); }
void zrevrange_command(Call& call) { range_generic(call, fixed(By::kRank, true), true, true); }
void zrangebyscore_command(Call& call) {
  range_generic(call, fixed(By::kScore, false), true, true);
}
void zrevrangebyscore_command(Call& call) {
  range_generic(call, fixed(By::kScore, true), true, true);
}
void zrangebylex_command(Call& call) { range_generic(call, fixed(By::kMember, false), true, true); }
void zrevrangebylex_command(Call& call) {
  range_generic(call, fixed(By::kMember, true), true, true);
}

void zrangestore_command(Call& call) {
  RangeRequest request;
  if (!parse_range_options(call, 5, true, false, false, request)) return;
  if (!parse_range_ends(call, 3, 4, request)) return;
  const Found<const Entry> source = call.read(call.key(2), Type::kSortedSet);
  if (source.refused()) return;
  // Copied first, because source and destination may be the same key.
  std::vector<std::pair<std::string, double>> chosen;
  if (source != nullptr) {
    const SortedSet& sorted = source->object<SortedSet>();
    visit(sorted, select(sorted, request), request.reverse, [&](const ScoredMember* member) {
      chosen.emplace_back(member->bytes(), member->score());
    });
  }
  const KeyRef key(call.args[1]);
  if (!journal_takes_scored(call, key.key, chosen)) return;
  Database database = call.database(key);
  Entry* old = database.find(key);
  if (!chosen.empty()) {
    Entry* entry = database.create(key, Type::kSortedSet, old);
    for (const auto& [member, score] : chosen) {
      database.sorted_put(key, entry, nullptr, member, score);
    }
    call.reply.integer(static_cast<int64_t>(chosen.size()));
    return database.notify(KeyEvent::kZRangeStore, key.key);
  }
  call.reply.integer(0);
  if (old == nullptr) return;
  database.remove(key, old);
  database.notify(KeyEvent::kDel, key.key);
}

void zremrangebyrank_command(Call& call) {
  remove_generic(call, By::kRank, KeyEvent::kZRemRangeByRank);
}
void zremrangebyscore_command(Call& call) {
  remove_generic(call, By::kScore, KeyEvent::kZRemRangeByScore);
}
void zremrangebylex_command(Call& call) {
  remove_generic(call, By::kMember, KeyEvent::kZRemRangeByLex);
}

}  // namespace sluice
