// Handlers of the sorted-set family; the rows that name them are in sorted_sets_rows.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "engine/base/bytes.h"

namespace sluice {

struct Call;
class Entry;
enum class KeyEvent : uint8_t;

// The options of ZADD before its pairs.
struct SortedAddOptions {
  bool if_absent = false;
  bool if_present = false;
  bool if_greater = false;
  bool if_less = false;
  bool count_changed = false;
  bool increment = false;
};
// Adds members with these scores to the sorted set at the first argument, and replies like ZADD.
// The members are the arguments from `first_member` on, every `step` arguments. `scores` returns
// the results of increments.
void add_scored_members(Call& call, const SortedAddOptions& options, std::span<double> scores,
                        size_t first_member, size_t step);
// Stores the members as the sorted set at the argument, replacing its value, and replies their
// number. REQUIRES: the members are distinct.
void store_scored_members(Call& call, size_t argument,
                          std::span<const std::pair<std::string, double>> result, KeyEvent event);
// Whether the journal takes them at this key. Replies the refusal, and returns false.
bool journal_takes_scored(const Call& call, Bytes key,
                          std::span<const std::pair<std::string, double>> result);

// The same of the removal of so many members from this rank on: each is a record.
bool journal_takes_removal(const Call& call, Bytes key, const Entry& entry, uint64_t first,
                           uint64_t count);

// sorted_sets.cc: single members
void zadd_command(Call& call);
void zincrby_command(Call& call);
void zrem_command(Call& call);
void zscore_command(Call& call);
void zmscore_command(Call& call);
void zrank_command(Call& call);
void zrevrank_command(Call& call);
void zrandmember_command(Call& call);
void zscan_command(Call& call);

// sorted_sets_pop.cc
void zpopmin_command(Call& call);
void zpopmax_command(Call& call);
void bzpopmin_command(Call& call);
void bzpopmax_command(Call& call);
void zmpop_command(Call& call);
void bzmpop_command(Call& call);

// sorted_sets_range.cc
void zcount_command(Call& call);
void zlexcount_command(Call& call);
void zrange_command(Call& call);
void zrangestore_command(Call& call);
void zrevrange_command(Call& call);
void zrangebyscore_command(Call& call);
void zrevrangebyscore_command(Call& call);
void zrangebylex_command(Call& call);
void zrevrangebylex_command(Call& call);
void zremrangebyrank_command(Call& call);
void zremrangebyscore_command(Call& call);
void zremrangebylex_command(Call& call);

// sorted_sets_algebra.cc
void zunion_command(Call& call);
void zunionstore_command(Call& call);
void zinter_command(Call& call);
void zinterstore_command(Call& call);
void zintercard_command(Call& call);
void zdiff_command(Call& call);
void zdiffstore_command(Call& call);

}  // namespace sluice
