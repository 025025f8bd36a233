// Sorted sets: pops from either end, including blocking ones and those from the first of several
// keys.
#include <algorithm>

#include "engine/commands/multi_pop.h"
#include "engine/commands/sorted_sets.h"
#include "engine/execution/call.h"

namespace sluice {

namespace {

// The first or last member. REQUIRES: the set is not empty.
ScoredMember* end_member(const SortedSet& sorted, bool lowest) {
  return lowest ? sorted.order.front().value : sorted.order.back().value;
}

KeyEvent pop_event(bool lowest) { return lowest ? KeyEvent::kZPopMin : KeyEvent::kZPopMax; }

// Writes and removes `count` members from one end. `nested_pairs`: each as [member, score].
void pop_members(Call& call, const KeyRef& key, Entry* entry, bool lowest, uint64_t count,
                 bool nested_pairs) {
  Database database = call.database(key);
  const uint64_t size = collection_size(*entry);
  count = std::min(count, size);
  call.reply.array(nested_pairs ? count : count * 2);
  for (uint64_t i = 0; i < count; ++i) {
    ScoredMember* member = end_member(entry->object<SortedSet>(), lowest);
    if (i == 0) database.notify(pop_event(lowest), key.key);
    if (nested_pairs) call.reply.array(2);
    call.reply.bulk(member->bytes());
    call.reply.number(member->score());
    database.sorted_remove(key, entry, member);
  }
  database.remove_if_empty(key, entry);
}

void pop_generic(Call& call, bool lowest) {
  int64_t count = 1;
  const bool has_count = call.args.size() > 2;
  if (call.args.size() > 3) return call.reply.error(errors::kSyntax);
  if (has_count) {
    if (!call.integer(2, count, errors::kNotPositive)) return;
    if (count < 0) return call.reply.error(errors::kNotPositive);
  }
  const KeyRef key = call.key(1);
  const Found<Entry> entry = call.find(key, Type::kSortedSet);
  if (entry.refused()) return;
  if (entry == nullptr || count == 0) return call.reply.array(0);
  // RESP3 nests the pairs only if a count was given.
  pop_members(call, key, entry, lowest, static_cast<uint64_t>(count),
              has_count && call.reply.protocol() == 3);
}

// [key, member, score], the reply of the blocking forms.
void reply_popped(Call& call, const KeyRef& key, Entry* entry, bool lowest) {
  ScoredMember* member = end_member(entry->object<SortedSet>(), lowest);
  call.reply.array(3);
  call.reply.bulk(key.key);
  Database database = call.database(key);
  database.notify(pop_event(lowest), key.key);
  call.reply.bulk(member->bytes());
  call.reply.number(member->score());
  database.sorted_remove(key, entry, member);
  database.remove_if_empty(key, entry);
}

template <bool lowest>
void serve_blocked_pop(Call& call, Bytes name) {
  const KeyRef key(name);
  reply_popped(call, key, call.find(key), lowest);
}

template <bool lowest>
void blocking_pop(Call& call) {
  int64_t timeout_ms = 0;
  if (!parse_timeout(call, call.args.size() - 1, timeout_ms)) return;
  const auto keys = call.args.subspan(1, call.args.size() - 2);
  for (const Bytes name : keys) {
    const KeyRef key(name);
    const Found<Entry> entry = call.find(key, Type::kSortedSet);
    if (entry.refused()) return;
    if (entry != nullptr) return reply_popped(call, key, entry, lowest);
  }
  if (call.nested) return call.reply.null_array();
  call.block(keys, Type::kSortedSet, timeout_ms, serve_blocked_pop<lowest>);
}

// [key, [[member, score], ...]]
void pop_many(Call& call, const KeyRef& key, Entry* entry, const MultiPopRequest& request) {
  call.reply.array(2);
  call.reply.bulk(key.key);
  pop_members(call, key, entry, request.first_word, request.count, true);
}

void serve_blocked_multi_pop(Call& call, Bytes name) {
  MultiPopRequest request;
  const bool parsed = parse_multi_pop(call, 2, "MIN", "MAX", request);
  CHECK(parsed);  // the same arguments as when it blocked
  const KeyRef key(name);
  pop_many(call, key, call.find(key), request);
}

// ZMPOP and BZMPOP. The time-out of BZMPOP is the argument before the number of keys.
void multi_pop(Call& call, bool blocking) {
  MultiPopRequest request;
  int64_t timeout_ms = 0;
  if (!parse_multi_pop(call, blocking ? 2 : 1, "MIN", "MAX", request)) return;
  if (blocking && !parse_timeout(call, 1, timeout_ms)) return;
  for (const Bytes name : request.keys) {
    const KeyRef key(name);
    const Found<Entry> entry = call.find(key, Type::kSortedSet);
    if (entry.refused()) return;
    if (entry != nullptr) return pop_many(call, key, entry, request);
  }
  if (!blocking || call.nested) return call.reply.null_array();
  call.block(request.keys, Type::kSortedSet, timeout_ms, serve_blocked_multi_pop);
}

}  // namespace

void zpopmin_command(Call& call) { pop_generic(call, true); }
void zpopmax_command(Call& call) { pop_generic(call, false); }
void bzpopmin_command(Call& call) { blocking_pop<true>(call); }
void bzpopmax_command(Call& call) { blocking_pop<false>(call); }

void zmpop_command(Call& call) { multi_pop(call, false); }

void bzmpop_command(Call& call) { multi_pop(call, true); }

}  // namespace sluice
