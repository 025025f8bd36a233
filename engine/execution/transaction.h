// Dispatch's part of MULTI, EXEC and WATCH; their handlers are in engine/commands/transactions.cc.
// Flags of the rows say which commands are concerned (kNotQueued, kRunsQueued, kEndsTransaction,
// kEndsWatching).
#pragma once

#include <string>

#include "engine/keyspace/shard.h"

namespace sluice {

class Engine;
class Execution;
struct Client;
struct Command;
struct WatchedKey;

// The shards that a command which ends watching (kEndsWatching) needs besides those of its own
// keys: those of the watched keys, and for EXEC those of all queued commands.
ShardMask transaction_shards(Execution& execution, const Client& client, const Command& command);

// Discards the queued commands, and ends all watching.
void end_transaction(Execution& execution, Client& client);

// Dispatch has refused EXEC itself (arity, permissions, BUSY): that ends the transaction. Returns
// the error for the client, in place of `error`. Locks the shards of the watched keys as far as
// possible.
std::string abort_transaction(Execution& execution, Client& client, Bytes error);

// Ends all watching of a connection that is not running a command. Locks the shards of its watched
// keys, but waits for no script.
void unwatch_all(Engine& engine, Client& client);

// The same inside a command. Dispatch has locked those shards, unless a script is busy.
void unwatch(Execution& execution, Client& client);

// Removes one key of a connection from its shard's list. REQUIRES: the shard is locked.
void forget_watcher(Shard& shard, const WatchedKey& watched, const WatchSet* set);

}  // namespace sluice
