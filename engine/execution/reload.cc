#include "engine/execution/reload.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "engine/execution/engine.h"
#include "engine/queue/adopted_keys.h"
#include "engine/queue/queue.h"

// The calling unit has locked all shards, which the analysis cannot see.
namespace sluice {

namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;

struct Piece {
  ByteBuffer records;
  uint64_t count = 0;
};

std::vector<Piece> all_records(Engine& engine) {
  const std::unique_ptr<CheckpointWalk> walk = begin_locked_walk(engine);
  std::vector<Piece> pieces(1);
  while (walk->step(pieces.back().records, pieces.back().count)) {
    if (pieces.back().records.size() >= kPieceBytes) pieces.emplace_back();
  }
  return pieces;
}

// The parts of a shard that are replayed, and those that must not be notified or would slow it
// down.
struct Aside {
  std::array<Keyspace, kDatabases> databases;
  DatabasePlaces places = places_at_first();
  std::array<QueueTimers, kDatabases> queue_timers;
  std::unique_ptr<AdoptedWatches> adopted;
  size_t watched_keys = 0;
  WaiterLists waiters;

  void exchange(Shard& shard) NO_THREAD_SAFETY_ANALYSIS {
    for (size_t i = 0; i < databases.size(); ++i) {
      std::swap(databases[i].entries, shard.databases[i].entries);
      std::swap(databases[i].expiries, shard.databases[i].expiries);
    }
    std::swap(places, shard.places);
    // The floors stay.
    for (size_t i = 0; i < databases.size(); ++i) {
      std::swap(queue_timers[i], shard.queue_timers[i]);
      std::swap(queue_timers[i].floor, shard.queue_timers[i].floor);
    }
    std::swap(adopted, shard.adopted);
  }
  // Replay uses functions that invalidate watches and wake waiters.
  void exchange_listeners(Shard& shard) NO_THREAD_SAFETY_ANALYSIS {
    std::swap(watched_keys, shard.watched_keys);
    std::swap(waiters, shard.waiters);
  }
};

bool replay(Engine& engine, const std::vector<Piece>& pieces) {
  const std::unique_ptr<Replay> replay = engine.begin_replay();
  const bool good = std::all_of(pieces.begin(), pieces.end(), [&](const Piece& piece) {
    return replay->apply(piece.records.view(), piece.count);
  });
  if (good) replay->finish();
  return good;
}

// Restores a job's lease: the journal does not hold its clocks and connections.
void keep_run(const JobRun& from, Queue& queue, Job* job) {
  JobRun& run = *job->run();
  const bool found = queue.leases.erase(static_cast<uint64_t>(run.due_steady()), run.token, job);
  CHECK(found);
  run.started_steady = from.started_steady;
  run.deadline_steady = from.deadline_steady;
  run.run_deadline_steady = from.run_deadline_steady;
  run.holder = from.holder;
  queue.leases.insert(static_cast<uint64_t>(run.due_steady()), run.token, job);
  if (from.tied_client_id != 0) queue.tie(job, from.tied_client_id);
}

void keep_members(const AdoptedKeys& from, AdoptedKeys& keys) {
  std::vector<const AdoptedKeys::Node*> members;
  for (const AdoptedKeys::Node& node : from.members()) members.push_back(&node);
  std::sort(members.begin(), members.end(),
            [](const auto* a, const auto* b) { return a->second.number < b->second.number; });
  for (const AdoptedKeys::Node* node : members) keys.put(node->first, node->second);
}

void keep_queue(Queue& from, Queue& queue) {
  for (auto at = from.runs.begin(); at.valid(); at.next()) {
    const Job* const old = at.value();
    if (Job* job = queue.find(old->id())) keep_run(*old->run(), queue, job);
  }
  if (from.adopted != nullptr) keep_members(*from.adopted, *queue.adopted);
  queue.lost_connections = from.lost_connections;
  std::swap(queue.stats, from.stats);
  queue.workers.keep(from.workers);
  queue.adaptive_runs = from.adaptive_runs;
  queue.timer_lag_ms = from.timer_lag_ms;
}

void keep_queues(Aside& from, Shard& shard) NO_THREAD_SAFETY_ANALYSIS {
  for (const QueueTimers& timers : from.queue_timers) {
    for (auto at = timers.by_name.begin(); at.valid(); at.next()) {
      Queue& old = *at.value();
      const KeyRef key(old.key);
      Entry* entry =
          shard.databases[static_cast<size_t>(old.database)].entries.find(key.key, key.hash);
      CHECK(entry != nullptr && entry->type() == Type::kQueue);
      Queue& queue = entry->object<Queue>();
      keep_queue(old, queue);
      list_queue_timers(shard, queue);
    }
  }
}

}  // namespace

bool reload_data(Engine& engine) {
  const std::vector<Piece> pieces = all_records(engine);
  std::vector<Aside> asides(kShards);
  const size_t adopted_queues = engine.adopted().queues.exchange(0);
  for (Shard& shard : engine.shards()) {
    asides[shard.index].exchange(shard);
    asides[shard.index].exchange_listeners(shard);
  }
  const bool good = replay(engine, pieces);
  for (Shard& shard : engine.shards()) {
    asides[shard.index].exchange_listeners(shard);
    if (good) {
      keep_queues(asides[shard.index], shard);
    } else {
      asides[shard.index].exchange(shard);
    }
  }
  if (!good) engine.adopted().queues.store(adopted_queues);
  return good;
}

}  // namespace sluice
