// What dispatch needs to know of MULTI, EXEC and WATCH (transactions.cc).
#pragma once

#include <span>
#include <string>

#include "engine/shard.h"

namespace sluice {

class Engine;
class Execution;
struct Client;
struct Command;
struct WatchedKey;

// MULTI, EXEC, DISCARD, WATCH, UNWATCH (and QUIT, RESET): run at once inside MULTI instead of being
// queued.
bool is_transaction_control(const Command& command);

// EXEC, DISCARD, QUIT, RESET: never refused for want of memory, as queueing more is.
// EXEC.
bool runs_queued_commands(const Command& command);
bool ends_transaction(const Command& command);

// The shards that such a command needs besides those of its own keys: for EXEC those of all queued
// commands and of all watched keys, for DISCARD and UNWATCH those of the watched keys.
ShardMask transaction_shards(Execution& execution, const Client& client, const Command& command);

// Ends all watching of a connection that runs no command now; locks the shards of its watched keys,
// but waits for no script.
void unwatch_all(Engine& engine, Client& client);

// The same inside a command. Dispatch has locked those shards, unless a script is busy.
void unwatch(Execution& execution, Client& client);

// Takes one key of a connection off its shard's list; the shard is locked.
void forget_watcher(Shard& shard, const WatchedKey& watched, const WatchSet* set);

// Dispatch has refused EXEC itself (arity, rights, BUSY): that ends the transaction. Returns what
// the client is told instead of `error`. Locks the shards of the watched keys that it can have.
std::string abort_transaction(Execution& execution, Client& client, Bytes error);

}  // namespace sluice
