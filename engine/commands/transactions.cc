// MULTI, EXEC, DISCARD, WATCH, UNWATCH.
//
// Dispatch queues the commands between MULTI and EXEC, and for each command here locks the shards
// that transaction_shards() returns (engine/execution/transaction.h).
#include <algorithm>

#include "engine/commands/families.h"
#include "engine/execution/call.h"
#include "engine/execution/engine.h"
#include "engine/execution/execution.h"
#include "engine/execution/refusal.h"
#include "engine/execution/transaction.h"

namespace sluice {

namespace {

// A watched key that has expired counts as changed.
bool watch_is_broken(Call& call) {
  for (const WatchedKey& watched : call.client.watched) {
    const KeyRef key(watched.key);
    call.database(key, watched.database).find(key);
  }
  return call.client.watch_set->broken.load(std::memory_order_relaxed);
}

// Refuses all of the queued commands, although all could be queued.
Status refuse_all(Call& call) {
  uint32_t flags = 0;
  for (const QueuedCommand& queued : call.client.queued) flags |= queued.command->flags;
  const Status growth = refuse_growth(call.engine, flags);
  const std::string aborted = "EXECABORT Transaction discarded because of";
  if (!growth.ok()) return refusal(aborted + ": " + growth.message());
  return call.client.multi_failed ? refusal(aborted + " previous errors.") : Status();
}

// Permissions may have changed since the command was queued.
Status refuse_rights(Call& call, const Command& command, std::span<const Bytes> args) {
  Bytes reason;
  switch (check_rights(call.engine, call.client, AclLogContext::kMulti, command, args)) {
    case Denial::kNone:
      return {};
    case Denial::kCommand:
      reason = "no permission to execute the command or subcommand";
      break;
    case Denial::kKey:
      reason = "no permission to touch the specified keys";
      break;
    case Denial::kChannel:
      reason = "no permission to access one of the channels used as arguments to the command";
      break;
  }
  return refusal(
      "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC "
      "call. This command is no longer allowed for the following reason: " +
      std::string(reason));
}

void multi_command(Call& call) {
  if (call.client.in_multi) return call.reply.error("ERR MULTI calls can not be nested");
  call.client.in_multi = true;
  call.client.multi_failed = false;
  call.reply.ok();
}

void discard_command(Call& call) {
  if (!call.client.in_multi) return call.reply.error("ERR DISCARD without MULTI");
  end_transaction(call.execution, call.client);
  call.reply.ok();
}

void exec_command(Call& call) {
  Client& client = call.client;
  if (!client.in_multi) return call.reply.error("ERR EXEC without MULTI");
  const bool broken = watch_is_broken(call);
  const Status status = refuse_all(call);
  if (!status.ok()) {
    end_transaction(call.execution, call.client);
    return call.reply.error(status.message());
  }
  if (broken) {
    end_transaction(call.execution, call.client);
    return call.reply.null_array();
  }
  // Watching ends before the commands run, so that their own changes are no conflict.
  unwatch(call.execution, client);
  call.reply.array(client.queued.size());
  std::vector<Bytes> args;
  for (const QueuedCommand& queued : client.queued) {
    args.assign(queued.arguments.begin(), queued.arguments.end());
    Status refused = refuse_rights(call, *queued.command, args);
    if (refused.ok() && queued.command->writes(args)) {
      refused = refuse_large_change(call.engine, call.unit.changed_bytes());
    }
    if (refused.ok()) {
      call.execution.run_nested(client, *queued.command, args, call.reply);
    } else {
      call.reply.error(refused.message());
    }
  }
  end_transaction(call.execution, call.client);
}

void watch_command(Call& call) NO_THREAD_SAFETY_ANALYSIS {
  Client& client = call.client;
  if (client.in_multi) return call.reply.error("ERR WATCH inside MULTI is not allowed");
  for (size_t i = 1; i < call.args.size(); ++i) {
    const KeyRef key = call.key(i);
    if ((call.execution.locked() & (1U << key.shard)) == 0) {
      // A busy script holds the shard, and its changes cannot be observed: that counts as a change.
      client.watch_set->broken.store(true, std::memory_order_relaxed);
      continue;
    }
    // Deletes an expired key now, so that its deletion is not a change for this connection.
    call.find(key);
    Shard& shard = call.engine.shard(key.shard);
    auto& by_key = shard.watchers[static_cast<size_t>(client.database)];
    std::vector<WatchSet*>& sets = by_key[std::string(key.key)];
    if (std::find(sets.begin(), sets.end(), client.watch_set.get()) != sets.end()) continue;
    sets.push_back(client.watch_set.get());
    ++shard.watched_keys;
    client.watched.push_back({client.database, std::string(key.key)});
  }
  call.reply.ok();
}

void unwatch_command(Call& call) {
  unwatch(call.execution, call.client);
  call.reply.ok();
}

constexpr uint32_t kControlFlags = kNoScript | kLoading | kStale | kFast | kAllowBusy;

const Command kTransactionRows[] = {
    {.name = "multi",
     .flags = kControlFlags | kNotQueued,
     .handler = multi_command,
     .since = "1.2.0",
     .summary = "Begins a transaction: later commands are queued until EXEC."},
    {.name = "exec",
     .flags = kNoScript | kLoading | kStale | kSkipSlowlog | kNotQueued | kRunsQueued |
              kEndsTransaction | kEndsWatching,
     .handler = exec_command,
     .since = "1.2.0",
     .complexity = "Depends on commands in the transaction",
     .summary = "Runs the queued commands as one unit."},
    {.name = "discard",
     .flags = kControlFlags | kNotQueued | kEndsTransaction | kEndsWatching,
     .handler = discard_command,
     .since = "2.0.0",
     .complexity = "O(N), when N is the number of queued commands",
     .summary = "Discards the queued commands and ends the transaction."},
    {.name = "watch",
     .flags = kControlFlags | kNotQueued,
     .keys = {keys_at(1, kKeyRo, -1)},
     .handler = watch_command,
     .since = "2.2.0",
     .complexity = "O(1) for every key.",
     .summary = "Makes the next EXEC fail if one of these keys has changed.",
     .syntax = "key [key ...]"},
    {.name = "unwatch",
     .flags = kControlFlags | kEndsWatching,
     .handler = unwatch_command,
     .since = "2.2.0",
     .summary = "Unwatches all keys."},
};

}  // namespace

const CommandFamily kTransactionCommands = {"transactions", kTransactionRows, kAclTransaction};

}  // namespace sluice
