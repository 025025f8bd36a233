// The common part of HRANDFIELD, SRANDMEMBER and ZRANDMEMBER: `[count [WITH...]]`, where, as in
// Redis, a positive count asks for distinct elements and a negative one allows repeats.
#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "engine/commands/random_number.h"
#include "engine/execution/call.h"

namespace sluice {

struct RandomRequest {
  bool has_count = false;
  bool with_values = false;
  bool distinct = true;
  uint64_t count = 1;
};

// `with_word`: "WITHSCORES", "WITHVALUES", or empty if the command has no such option. Returns
// false with the error replied.
bool parse_random_request(const Call& call, Bytes with_word, RandomRequest& request);
void reply_random_missing(Call& call, const RandomRequest& request);
// Whether an answer with `count` repeats, which begins at `begin` of the reply's buffer if there is
// one, is longer than proto-max-bulk-len or must become so. An error has taken its place then.
bool is_too_long(Call& call, uint64_t count, size_t begin);

// Random nodes of a map that is not empty: `count` distinct ones (all, if there are fewer), or
// `count` with repeats.
template <class Map>
auto choose_random(const Map& map, uint64_t count, bool distinct) {
  using Node = decltype(map.find(Bytes(), 0));
  std::vector<Node> chosen;
  if (!distinct) {
    for (uint64_t i = 0; i < count; ++i) chosen.push_back(map.random(random_number()));
    return chosen;
  }
  if (count * 3 >= map.size()) {
    // If most nodes are wanted, drops the surplus from all, instead of drawing until the last ones
    // turn up.
    map.for_each([&](Node node) { chosen.push_back(node); });
    if (count >= chosen.size()) return chosen;
    for (uint64_t i = 0; i < count; ++i) {
      std::swap(chosen[i], chosen[i + random_number() % (chosen.size() - i)]);
    }
    chosen.resize(count);
    return chosen;
  }
  std::unordered_set<const void*> seen;
  while (chosen.size() < count) {
    Node node = map.random(random_number());
    if (seen.insert(node).second) chosen.push_back(node);
  }
  return chosen;
}

template <class Map, class WriteName, class WriteValue>
void reply_random(Call& call, const RandomRequest& request, const Map& map, WriteName write_name,
                  WriteValue write_value) {
  if (!request.has_count) return write_name(map.random(random_number()));
  const bool pairs = request.with_values && call.reply.protocol() == 3;
  if (!request.distinct) {
    // The client's count may be up to 2^63.
    const ByteBuffer* const out = call.reply.buffer();
    const size_t begin = out == nullptr ? 0 : out->size();
    if (is_too_long(call, request.count, begin)) return;
    call.reply.array(request.with_values && !pairs ? request.count * 2 : request.count);
    for (uint64_t i = 0; i < request.count; ++i) {
      if (is_too_long(call, request.count, begin)) return;
      const auto* node = map.random(random_number());
      if (pairs) call.reply.array(2);
      write_name(node);
      if (request.with_values) write_value(node);
    }
    return;
  }
  const auto chosen = choose_random(map, request.count, true);
  call.reply.array(request.with_values && !pairs ? chosen.size() * 2 : chosen.size());
  for (const auto* node : chosen) {
    if (pairs) call.reply.array(2);
    write_name(node);
    if (request.with_values) write_value(node);
  }
}

}  // namespace sluice
