// Sorted sets: pops from either end, including blocking ones and those from the first of several
// keys.
#include <algorithm>

#include "engine/commands/multi_pop.h"
#include "engine/commands/sorted_sets.h"
#include "engine/execution/call.h"

namespace sluice {

namespace {

KeyEvent sorted_pop_event(bool lowest) { return lowest ? KeyEvent::kZPopMin : KeyEvent::kZPopMax; }

// Writes and removes `count` members from one end. `nested_pairs`: each as [member, score].
// REQUIRES: there are so many.
void pop_members(Call& call, const KeyRef& key, Entry* entry, bool lowest, uint64_t count,
                 bool nested_pairs) {
  Database database = call.database(key);
  database.notify(sorted_pop_event(lowest), key.key);
  for (uint64_t i = 0; i < count; ++i) {
    const auto& order = entry->object<SortedSet>().order;
    ScoredMember* member = lowest ? order.front().value : order.back().value;
    if (nested_pairs) call.reply.array(2);
    call.reply.bulk(member->bytes());
    call.reply.number(member->score());
    database.sorted_remove(key, entry, member);
  }
  database.remove_if_empty(key, entry);
}

struct SortedEnds {
  static constexpr Type kType = Type::kSortedSet;
  static constexpr Bytes kFirst = "MIN";
  static constexpr Bytes kSecond = "MAX";
  static constexpr size_t kParts = 3;  // [key, member, score]

  static void pop_one(Call& call, const KeyRef& key, Entry* entry, bool lowest) {
    pop_members(call, key, entry, lowest, 1, false);
  }

  // A single member is never larger than a request may be.
  static bool takes(const Call& call, const KeyRef& key, const Entry& entry, bool lowest,
                    uint64_t count) {
    const uint64_t first = lowest ? 0 : collection_size(entry) - count;
    return count <= 1 || journal_takes_removal(call, key.key, entry, first, count);
  }

  static void pop_many(Call& call, const KeyRef& key, Entry* entry, bool lowest, uint64_t count) {
    call.reply.array(count);
    pop_members(call, key, entry, lowest, count, true);
  }
};

void sorted_pop_generic(Call& call, bool lowest) {
  int64_t count = 1;
  const bool has_count = call.args.size() > 2;
  if (call.args.size() > 3) return call.reply.error(errors::kSyntax);
  if (!parse_pop_count(call, count)) return;
  const KeyRef key = call.key(1);
  const Found<Entry> entry = call.find(key, Type::kSortedSet);
  if (entry.refused()) return;
  if (entry == nullptr || count == 0) return call.reply.array(0);
  const uint64_t popped = std::min(static_cast<uint64_t>(count), collection_size(*entry));
  if (!SortedEnds::takes(call, key, *entry, lowest, popped)) return;
  // RESP3 nests the pairs only if a count was given.
  const bool nested_pairs = has_count && call.reply.protocol() == 3;
  call.reply.array(nested_pairs ? popped : popped * 2);
  pop_members(call, key, entry, lowest, popped, nested_pairs);
}

}  // namespace

void zpopmin_command(Call& call) { sorted_pop_generic(call, true); }
void zpopmax_command(Call& call) { sorted_pop_generic(call, false); }
void bzpopmin_command(Call& call) { blocking_pop<SortedEnds, true>(call); }
void bzpopmax_command(Call& call) { blocking_pop<SortedEnds, false>(call); }

void zmpop_command(Call& call) { multi_pop<SortedEnds>(call, false); }
void bzmpop_command(Call& call) { multi_pop<SortedEnds>(call, true); }

}  // namespace sluice
