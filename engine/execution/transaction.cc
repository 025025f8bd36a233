#include "engine/execution/transaction.h"

#include <algorithm>
#include <utility>

#include "engine/execution/engine.h"
#include "engine/execution/execution.h"

namespace sluice {

namespace {

// A connection keeps room for this many queued commands for its next MULTI.
constexpr size_t kKeptQueueRoom = 64;

ShardMask watched_shards(const Client& client) {
  ShardMask mask = 0;
  for (const WatchedKey& watched : client.watched) mask |= 1U << KeyRef(watched.key).shard;
  return mask;
}

}  // namespace

void end_transaction(Execution& execution, Client& client) {
  client.in_multi = false;
  client.multi_failed = false;
  client.queued.clear();
  client.queued_bytes = 0;
  if (client.queued.capacity() > kKeptQueueRoom) client.queued.shrink_to_fit();
  unwatch(execution, client);
}

ShardMask transaction_shards(Execution& execution, const Client& client, const Command& command) {
  ShardMask mask = watched_shards(client);
  if ((command.flags & kRunsQueued) == 0) return mask;
  std::vector<Bytes> args;
  for (const QueuedCommand& queued : client.queued) {
    if (mask == kAllShards) break;
    args.assign(queued.arguments.begin(), queued.arguments.end());
    KeyRef first_key;
    mask |= execution.shards_of(*queued.command, args, first_key);
  }
  return mask;
}

std::string abort_transaction(Execution& execution, Client& client, Bytes error) {
  execution.lock_unless_busy(watched_shards(client));
  end_transaction(execution, client);
  constexpr Bytes kCode = "ERR ";
  if (error.substr(0, kCode.size()) == kCode) error.remove_prefix(kCode.size());
  return "EXECABORT Transaction discarded because of: " + std::string(error);
}

void forget_watcher(Shard& shard, const WatchedKey& watched,
                    const WatchSet* set) NO_THREAD_SAFETY_ANALYSIS {
  auto& by_key = shard.watchers[static_cast<size_t>(watched.database)];
  const auto found = by_key.find(watched.key);
  CHECK(found != by_key.end());
  std::vector<WatchSet*>& sets = found->second;
  const auto own = std::find(sets.begin(), sets.end(), set);
  CHECK(own != sets.end());
  sets.erase(own);
  if (sets.empty()) by_key.erase(found);
  --shard.watched_keys;
}

namespace {

// Ends the client's watching; `left` are the keys whose lists still contain its set.
void end_watching(Engine& engine, Client& client, std::vector<WatchedKey> left) {
  client.watched.clear();
  if (left.empty()) {
    client.watch_set->broken.store(false, std::memory_order_relaxed);
    return;
  }
  engine.departures().leave(std::exchange(client.watch_set, std::make_unique<WatchSet>()),
                            std::move(left));
}

}  // namespace

void unwatch(Execution& execution, Client& client) {
  std::vector<WatchedKey> left;
  for (const WatchedKey& watched : client.watched) {
    const unsigned shard = KeyRef(watched.key).shard;
    if ((execution.locked() & (1U << shard)) != 0) {
      forget_watcher(execution.engine().shard(shard), watched, client.watch_set.get());
    } else {
      left.push_back(watched);
    }
  }
  end_watching(execution.engine(), client, std::move(left));
}

void unwatch_all(Engine& engine, Client& client) {
  std::vector<WatchedKey> left;
  for (const WatchedKey& watched : client.watched) {
    Shard& shard = engine.shard(KeyRef(watched.key).shard);
    if (!engine.lock_patiently(shard)) {
      left.push_back(watched);
      continue;
    }
    forget_watcher(shard, watched, client.watch_set.get());
    shard.mutex.unlock();
  }
  end_watching(engine, client, std::move(left));
}

}  // namespace sluice
