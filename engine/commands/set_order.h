// The order of a set's members in replies: ascending where Redis would hold an intset.
#pragma once

#include <algorithm>
#include <vector>

#include "engine/base/numbers.h"
#include "engine/execution/call.h"
#include "engine/keyspace/collections.h"

namespace sluice {

inline bool integer_before(const Member* a, const Member* b) {
  return *parse_i64(a->bytes()) < *parse_i64(b->bytes());
}

inline std::vector<const Member*> members_in_order(const Set& set) {
  std::vector<const Member*> members;
  members.reserve(set.members.size());
  set.members.for_each([&](const Member* member) { members.push_back(member); });
  if (set.intset) std::sort(members.begin(), members.end(), integer_before);
  return members;
}

inline void reply_members(Call& call, const Set& set) {
  call.reply.set(set.members.size());
  if (set.intset) {
    for (const Member* member : members_in_order(set)) call.reply.bulk(member->bytes());
  } else {
    set.members.for_each([&](const Member* member) { call.reply.bulk(member->bytes()); });
  }
}

}  // namespace sluice
