// Call: one command that is being executed: its arguments, the client, the reply, and the locked
// shards.
//
// Made by Execution for each command and passed to the row's handler, under the locks of all shards
// that the command's keys (or its row's flags) need. A handler validates, calls functions of
// Database, and writes exactly one reply. It uses no socket, no clock, no lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "engine/base/found.h"
#include "engine/base/status.h"
#include "engine/clients/client.h"
#include "engine/keyspace/database.h"
#include "engine/reply/reply.h"
#include "engine/table/command.h"

namespace sluice {

class Engine;
class Execution;

struct Call {
  Engine& engine;
  Execution& execution;
  Client& client;
  Unit& unit;
  const Command& command;
  std::span<const Bytes> args;  // args[0] is the command's name
  Reply& reply;
  // Inside MULTI, a script, or a waiter that is being served: blocking commands reply at once.
  bool nested = false;

  int64_t now_ms() const { return unit.times.wall_ms; }

  // The key at this argument. The hash of a command's first key is computed only once.
  KeyRef key(size_t argument) const { return key(args[argument]); }
  // The same for one of the arguments themselves.
  KeyRef key(Bytes name) const {
    const bool is_first = first_key.key.data() == name.data() && name.data() != nullptr &&
                          first_key.key.size() == name.size();
    return is_first ? first_key : KeyRef(name);
  }
  // The client's selected database in the shard of `key`.
  Database database(const KeyRef& key) const { return database(key, client.database); }
  Database database(const KeyRef& key, int index) const;

  // The entry of a key, or null if it is absent. Refused with WRONGTYPE if it holds another type.
  Found<Entry> find(const KeyRef& key, Type type) const;
  Entry* find(const KeyRef& key) const;
  // The same for commands that write, where Redis counts the look-up as one of a reader: the source
  // of a copy, the old value that is replied.
  Found<Entry> read(const KeyRef& key, Type type) const;
  Entry* read(const KeyRef& key) const;
  // Like find, but makes an empty collection for an absent key. Null only if it is refused.
  Entry* find_or_create(const KeyRef& key, Type type) const;

  // Parse arguments as numbers. Return false with the error replied.
  bool integer(size_t argument, int64_t& value, Bytes error = errors::kNotInteger) const;
  bool real(size_t argument, double& value, Bytes error = errors::kNotFloat) const;
  // Parses the number of a database. Leaves `number` unchanged if it is invalid.
  bool database_number(size_t argument, int& number) const;
  // Replies OK, or the refusal.
  void reply_status(const Status& status) const {
    status.ok() ? reply.ok() : reply.error(status.message());
  }
  bool option(size_t argument, Bytes word) const {
    return equals_ignore_case(args[argument], word);
  }

  // Blocks the client at these keys until one of them has elements of type `wanted`; `serve` then
  // replies. REQUIRES: !nested. `other_shards`: serve may change keys outside the ready key's
  // shard.
  void block(std::span<const Bytes> keys, Type wanted, int64_t timeout_ms,
             void (*serve)(Call& call, Bytes key), bool other_shards = false);
  // The same with a waiter that the caller has set up: wanted, serve, and perhaps timeout_ms,
  // accepts, and the fields for queues.
  void block(std::span<const Bytes> keys, std::shared_ptr<Waiter> waiter);

  KeyRef first_key = {};
  // The waiter that is being served, or null.
  const Waiter* waiter = nullptr;
  LentWord* lent = nullptr;  // Request::lent
};

// The bytes up to the first NUL, as Redis reads patterns and prints arguments in messages.
inline Bytes up_to_nul(Bytes text) { return text.substr(0, text.find('\0')); }

// Replies the error. Returns false, as parsers of arguments do then.
inline bool fail(const Call& call, Bytes error) {
  call.reply.error(error);
  return false;
}

// Applies Redis's rules to the places of LRANGE and ZRANGE; negative ones count from the end.
// Returns false for an empty range.
inline bool clamp_range(int64_t& start, int64_t& stop, int64_t size) {
  if (start < 0) start = std::max<int64_t>(start + size, 0);
  if (stop < 0) stop += size;
  stop = std::min(stop, size - 1);
  return start <= stop && start < size;
}

// Converts the time-out of a blocking command (seconds, a double as text) to milliseconds; 0 means
// no time-out. Returns false with the error replied ("timeout is negative", "timeout is not a float
// or out of range").
bool parse_timeout(const Call& call, size_t argument, int64_t& timeout_ms);

}  // namespace sluice
