// The digests of DEBUG DIGEST and DIGEST-VALUE: byte for byte those of redis-server 7.0.15 for the
// types of Redis. The digest of a native queue is defined here: the number of its type (7) is mixed
// in; then each record that a checkpoint writes of it (engine/queue/queue_records.h: number, field,
// value mixed) and each retained event (number, time, type, id, fields mixed) is digested by itself
// and added. What time alone changes is left out: queue time, and the debts of rates. So two
// servers that hold the same units have the same digest, whatever was read there.
//
// Pure functions of values whose shards are locked.
#pragma once

#include <string>

#include "engine/base/bytes.h"
#include "engine/base/sha1.h"
#include "engine/keyspace/entry.h"

namespace sluice {

class Digest {
 public:
  // Adds bytes independent of their order.
  void add(Bytes bytes);
  // Mixes bytes in, so that their order matters.
  void mix(Bytes bytes);
  void mix_number(uint32_t number);

  Bytes bytes() const { return {reinterpret_cast<const char*>(sha_.data()), sha_.size()}; }
  // Forty lower-case hexadecimal digits.
  std::string text() const;

 private:
  Sha1 sha_{};
};

// Mixes in the value, and a marker if it has an expiry.
void digest_value(const Entry& entry, Digest& digest);
// Mixes in what Redis's digest leaves out: when it expires, the groups of a stream.
void digest_rest(const Entry& entry, Digest& digest);

}  // namespace sluice
