// Pops from the ends of lists and sorted sets: BLPOP and BZPOPMIN, LMPOP, BLMPOP, ZMPOP and BZMPOP,
// and the count of LPOP and ZPOPMIN.
//
// `Ends` is what differs:
//   kType, kFirst and kSecond (the words for the two ends), kParts (the parts of one reply of a
//   blocking form, with the key);
//   pop_one(call, key, entry, first) writes the parts of one element and removes it;
//   pop_many(call, key, entry, first, count) writes an array of `count` and removes them;
//   takes(call, key, entry, first, count): whether the journal does. Otherwise replies the refusal.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "engine/execution/call.h"
#include "engine/keyspace/collections.h"

namespace sluice {

// `numkeys key [key ...] <first | second> [COUNT count]`
struct MultiPopRequest {
  std::span<const Bytes> keys;
  bool first_word = true;  // LEFT or MIN, not RIGHT or MAX
  uint64_t count = 1;
};

// Returns false with the error replied.
bool parse_multi_pop(const Call& call, size_t numkeys_at, Bytes first_word, Bytes second_word,
                     MultiPopRequest& request);

// The optional count behind the key of LPOP and ZPOPMIN; `count` stays as it is without one.
// Returns false with the error replied.
inline bool parse_pop_count(const Call& call, int64_t& count) {
  if (call.args.size() <= 2) return true;
  if (!call.integer(2, count, errors::kNotPositive)) return false;
  return count >= 0 || fail(call, errors::kNotPositive);
}

// Calls pop(key, entry) for the first of the keys that has elements. Returns false if none has, or
// true if a reply was written.
template <class Pop>
bool pop_first(const Call& call, std::span<const Bytes> keys, Type type, Pop pop) {
  for (const Bytes name : keys) {
    const KeyRef key(name);
    const Found<Entry> entry = call.find(key, type);
    if (entry.refused()) return true;
    if (entry == nullptr) continue;
    pop(key, entry);
    return true;
  }
  return false;
}

template <class Ends>
void reply_pop(Call& call, const KeyRef& key, Entry* entry, bool first) {
  call.reply.array(Ends::kParts);
  call.reply.bulk(key.key);
  Ends::pop_one(call, key, entry, first);
}

// BLPOP, BRPOP, BZPOPMIN, BZPOPMAX
template <class Ends, bool first>
void blocking_pop(Call& call) {
  int64_t timeout_ms = 0;
  if (!parse_timeout(call, call.args.size() - 1, timeout_ms)) return;
  const auto keys = call.args.subspan(1, call.args.size() - 2);
  const auto pop = [&](const KeyRef& key, Entry* entry) {
    reply_pop<Ends>(call, key, entry, first);
  };
  if (pop_first(call, keys, Ends::kType, pop)) return;
  if (call.nested) return call.reply.null_array();
  call.block(keys, Ends::kType, timeout_ms, [](Call& served, Bytes name) {
    const KeyRef key(name);
    reply_pop<Ends>(served, key, served.find(key), first);
  });
}

template <class Ends>
void reply_multi_pop(Call& call, const KeyRef& key, Entry* entry, const MultiPopRequest& request) {
  const uint64_t count = std::min(request.count, collection_size(*entry));
  if (!Ends::takes(call, key, *entry, request.first_word, count)) return;
  call.reply.array(2);
  call.reply.bulk(key.key);
  Ends::pop_many(call, key, entry, request.first_word, count);
}

template <class Ends>
void serve_multi_pop(Call& call, Bytes name) {
  MultiPopRequest request;
  const bool parsed = parse_multi_pop(call, 2, Ends::kFirst, Ends::kSecond, request);
  CHECK(parsed);  // the same arguments as when it blocked
  const KeyRef key(name);
  reply_multi_pop<Ends>(call, key, call.find(key), request);
}

// LMPOP and ZMPOP, or BLMPOP and BZMPOP, whose time-out is the argument before the number of keys.
template <class Ends>
void multi_pop(Call& call, bool blocking) {
  MultiPopRequest request;
  int64_t timeout_ms = 0;
  if (!parse_multi_pop(call, blocking ? 2 : 1, Ends::kFirst, Ends::kSecond, request)) return;
  if (blocking && !parse_timeout(call, 1, timeout_ms)) return;
  const auto pop = [&](const KeyRef& key, Entry* entry) {
    reply_multi_pop<Ends>(call, key, entry, request);
  };
  if (pop_first(call, request.keys, Ends::kType, pop)) return;
  if (!blocking || call.nested) return call.reply.null_array();
  call.block(request.keys, Ends::kType, timeout_ms, serve_multi_pop<Ends>);
}

}  // namespace sluice
