// Sorted sets: commands on single members. Ranges, pops and algebra are in other files.
#include "engine/commands/sorted_sets.h"

#include <cmath>

#include "engine/base/numbers.h"
#include "engine/commands/random_members.h"
#include "engine/commands/scan.h"
#include "engine/execution/call.h"

namespace sluice {

namespace {

// Parses the options before the pairs; `at` ends at the first score.
bool parse_add_options(const Call& call, SortedAddOptions& options, size_t& at) {
  for (at = 2; at < call.args.size(); ++at) {
    if (call.option(at, "NX")) {
      options.if_absent = true;
    } else if (call.option(at, "XX")) {
      options.if_present = true;
    } else if (call.option(at, "GT")) {
      options.if_greater = true;
    } else if (call.option(at, "LT")) {
      options.if_less = true;
    } else if (call.option(at, "CH")) {
      options.count_changed = true;
    } else if (call.option(at, "INCR")) {
      options.increment = true;
    } else {
      break;
    }
  }
  const size_t left = call.args.size() - at;
  Bytes error;
  if (left == 0 || left % 2 == 1) {
    error = errors::kSyntax;
  } else if (options.if_absent && options.if_present) {
    error = "ERR XX and NX options at the same time are not compatible";
  } else if ((options.if_greater && options.if_absent) || (options.if_less && options.if_absent) ||
             (options.if_greater && options.if_less)) {
    error = "ERR GT, LT, and/or NX options at the same time are not compatible";
  } else if (options.increment && left > 2) {
    error = "ERR INCR option supports a single increment-element pair";
  }
  if (error.empty()) return true;
  return fail(call, error);
}

enum class AddResult : uint8_t { kNothing, kAdded, kUpdated, kNotANumber };

// Adds one member; an increment sets `score` to the resulting score.
AddResult add_member(Database database, const KeyRef& key, Entry* entry, Bytes member,
                     const SortedAddOptions& options, double& score) {
  SortedSet& sorted = entry->object<SortedSet>();
  ScoredMember* found = sorted.members.find(member, hash_bytes(member));
  if (found == nullptr) {
    if (options.if_present) return AddResult::kNothing;
    database.sorted_put(key, entry, nullptr, member, score);
    return AddResult::kAdded;
  }
  if (options.if_absent) return AddResult::kNothing;
  if (options.increment) {
    score += found->score();
    if (std::isnan(score)) return AddResult::kNotANumber;
  }
  if ((options.if_greater && score <= found->score()) ||
      (options.if_less && score >= found->score())) {
    return AddResult::kNothing;
  }
  if (score == found->score()) return AddResult::kUpdated;  // unchanged
  database.sorted_put(key, entry, found, member, score);
  return AddResult::kUpdated;
}

void add_generic(Call& call, const SortedAddOptions& options, size_t first_pair) {
  const size_t pairs = (call.args.size() - first_pair) / 2;
  // All scores are parsed before any change: the command is atomic.
  constexpr size_t kFew = 8;
  double few[kFew];
  std::vector<double> many;
  if (pairs > kFew) many.resize(pairs);
  double* scores = pairs > kFew ? many.data() : few;
  for (size_t i = 0; i < pairs; ++i) {
    if (!call.real(first_pair + 2 * i, scores[i])) return;
  }
  add_scored_members(call, options, {scores, pairs}, first_pair + 1, 2);
}

void rank_generic(Call& call, bool reverse) {
  const bool with_score = call.args.size() == 4 && call.option(3, "WITHSCORE");
  // Redis 7.0 takes no further argument.
  if (call.args.size() > 3 && !with_score) {
    return call.reply.error("ERR wrong number of arguments for '" + std::string(call.command.name) +
                            "' command");
  }
  const auto reply_none = [&] { with_score ? call.reply.null_array() : call.reply.null(); };
  const Found<const Entry> entry = call.find(call.key(1), Type::kSortedSet);
  if (entry.refused()) return;
  if (entry == nullptr) return reply_none();
  const SortedSet& sorted = entry->object<SortedSet>();
  const Bytes member = call.args[2];
  ScoredMember* found = sorted.members.find(member, hash_bytes(member));
  if (found == nullptr) return reply_none();
  const uint64_t rank =
      sorted.order.rank(SortedSet::major(found->score()), SortedSet::minor(member), found);
  if (with_score) call.reply.array(2);
  call.reply.integer(static_cast<int64_t>(reverse ? sorted.order.size() - 1 - rank : rank));
  if (with_score) call.reply.number(found->score());
}

}  // namespace

void add_scored_members(Call& call, const SortedAddOptions& options, std::span<double> scores,
                        size_t first_member, size_t step) {
  const KeyRef key = call.key(1);
  Found<Entry> entry = call.find(key, Type::kSortedSet);
  if (entry.refused()) return;
  Database database = call.database(key);
  if (entry == nullptr) {
    if (options.if_present) {
      return options.increment ? call.reply.null() : call.reply.integer(0);
    }
    entry = database.create(key, Type::kSortedSet);
  }
  int64_t added = 0;
  int64_t changed = 0;
  AddResult result = AddResult::kNothing;
  for (size_t i = 0; i < scores.size(); ++i) {
    const Bytes member = call.args[first_member + step * i];
    const uint64_t before = call.unit.changes;
    result = add_member(database, key, entry, member, options, scores[i]);
    if (result == AddResult::kNotANumber) {
      return call.reply.error("ERR resulting score is not a number (NaN)");
    }
    if (result == AddResult::kAdded) ++added;
    if (result == AddResult::kUpdated && call.unit.changes != before) ++changed;
  }
  if (!options.increment) {
    call.reply.integer(options.count_changed ? added + changed : added);
  } else if (result == AddResult::kNothing) {
    call.reply.null();
  } else {
    call.reply.number(scores[0]);
  }
  if (added + changed == 0) return;
  database.notify(options.increment ? KeyEvent::kZIncr : KeyEvent::kZAdd, key.key);
}

void zadd_command(Call& call) {
  SortedAddOptions options;
  size_t first_pair = 0;
  if (parse_add_options(call, options, first_pair)) add_generic(call, options, first_pair);
}

void zincrby_command(Call& call) {
  SortedAddOptions options;
  size_t first_pair = 0;
  // A score that is the name of an option of ZADD is taken as that option, so its pair is missing
  // then.
  if (!parse_add_options(call, options, first_pair)) return;
  options.increment = true;
  add_generic(call, options, first_pair);
}

void zrem_command(Call& call) {
  const KeyRef key = call.key(1);
  const Found<Entry> entry = call.find(key, Type::kSortedSet);
  if (entry.refused()) return;
  if (entry == nullptr) return call.reply.integer(0);
  Database database = call.database(key);
  int64_t removed = 0;
  for (size_t at = 2; at < call.args.size(); ++at) {
    const Bytes member = call.args[at];
    SortedSet& sorted = entry->object<SortedSet>();
    ScoredMember* found = sorted.members.find(member, hash_bytes(member));
    if (found == nullptr) continue;
    database.sorted_remove(key, entry, found);
    ++removed;
  }
  if (removed != 0) database.notify(KeyEvent::kZRem, key.key);
  database.remove_if_empty(key, entry);
  call.reply.integer(removed);
}

void zscore_command(Call& call) {
  const Found<const Entry> entry = call.find(call.key(1), Type::kSortedSet);
  if (entry.refused()) return;
  const ScoredMember* found = entry == nullptr ? nullptr
                                               : entry->object<SortedSet>().members.find(
                                                     call.args[2], hash_bytes(call.args[2]));
  if (found == nullptr) return call.reply.null();
  call.reply.number(found->score());
}

void zmscore_command(Call& call) {
  const Found<const Entry> entry = call.find(call.key(1), Type::kSortedSet);
  if (entry.refused()) return;
  call.reply.array(call.args.size() - 2);
  for (const Bytes member : call.args.subspan(2)) {
    const ScoredMember* found =
        entry == nullptr ? nullptr
                         : entry->object<SortedSet>().members.find(member, hash_bytes(member));
    if (found == nullptr) {
      call.reply.null();
    } else {
      call.reply.number(found->score());
    }
  }
}

void zrank_command(Call& call) { rank_generic(call, false); }
void zrevrank_command(Call& call) { rank_generic(call, true); }

void zrandmember_command(Call& call) {
  RandomRequest request;
  if (!parse_random_request(call, "WITHSCORES", request)) return;
  const Found<const Entry> entry = call.find(call.key(1), Type::kSortedSet);
  if (entry.refused()) return;
  if (entry == nullptr) return reply_random_missing(call, request);
  const auto& members = entry->object<SortedSet>().members;
  reply_random(
      call, request, members, [&](const ScoredMember* member) { call.reply.bulk(member->bytes()); },
      [&](const ScoredMember* member) { call.reply.number(member->score()); });
}

namespace {

// A listpack stores every whole score that fits as an integer; otherwise ZSCAN prints it as %.17g.
std::string scanned_score(double score, bool listpack) {
  constexpr double kLimit = static_cast<double>(INT64_MAX / 2);
  if (listpack && score >= -kLimit && score <= kLimit && score == std::trunc(score)) {
    return std::to_string(static_cast<int64_t>(score));
  }
  return format_double(score);
}

}  // namespace

void zscan_command(Call& call) {
  ScanRequest request;
  const Entry* entry = begin_element_scan(call, Type::kSortedSet, request);
  if (entry == nullptr) return;
  const SortedSet& sorted = entry->object<SortedSet>();
  const auto write = [&](const ScoredMember* member) {
    if (!request.matches(member->bytes())) return size_t{0};
    call.reply.bulk(member->bytes());
    call.reply.bulk(scanned_score(member->score(), sorted.listpack));
    return size_t{2};
  };
  if (!sorted.listpack) return reply_scan(call, request, sorted.members, write);
  // Small sets are returned as a whole and in order, like Redis's listpacks.
  const size_t mark = begin_whole_scan(call);
  size_t count = 0;
  for (auto at = sorted.order.begin(); at.valid() && !sorted.order.empty(); at.next()) {
    count += write(at.value());
  }
  call.reply.close_array(mark, count);
}

}  // namespace sluice
