// LLEN, HLEN, SCARD, ZCARD, XLEN: the number of elements of a collection.
#pragma once

#include "engine/execution/call.h"
#include "engine/keyspace/collections.h"

namespace sluice {

template <Type kType>
void size_command(Call& call) {
  const Found<const Entry> entry = call.find(call.key(1), kType);
  if (entry.refused()) return;
  call.reply.integer(entry == nullptr ? 0 : static_cast<int64_t>(collection_size(*entry)));
}

}  // namespace sluice
