#include "engine/keyspace/queue_timers.h"

#include <algorithm>
#include <memory>

#include "engine/keyspace/adopted_watch.h"
#include "engine/keyspace/shard.h"
#include "engine/queue/queue_records.h"

// The calling unit has locked the shard; see database.cc for why the analysis is off.
namespace sluice {

namespace {

void lower(std::atomic<int64_t>& due, int64_t to) {
  // Written only under the shard's lock.
  if (to < due.load(std::memory_order_relaxed)) due.store(to, std::memory_order_release);
}

// Every queue is in by_time. Queues without work have this time, after all others.
constexpr int64_t kNothingDue = kNeverMs - 1;

// The order of queues with the same time does not matter. Queues without work may be many, so each
// gets a distinct key for finding it.
uint64_t tie_of(int64_t due, const Queue* queue) {
  return due == kNothingDue ? reinterpret_cast<uintptr_t>(queue) : 0;
}

// The order of names, as far as their first eight bytes decide it.
uint64_t first_bytes(Bytes name) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < sizeof(bytes); ++i) {
    bytes = bytes << 8 | (i < name.size() ? static_cast<uint8_t>(name[i]) : 0);
  }
  return bytes;
}

void relist(OrderedIndex<Queue*>& index, int64_t& listed, int64_t due, Queue* queue) {
  if (listed == due) return;
  const bool stays = listed != kNeverMs && due != kNeverMs;
  if (stays && index.rekey_only(static_cast<uint64_t>(due), tie_of(due, queue))) {
    listed = due;
    return;
  }
  if (listed != kNeverMs) {
    const bool was_there = index.erase(static_cast<uint64_t>(listed), tie_of(listed, queue), queue);
    CHECK(was_there);
  }
  listed = due;
  if (listed != kNeverMs) index.insert(static_cast<uint64_t>(listed), tie_of(due, queue), queue);
}

QueueTimers& timers_of(Shard& shard, const Queue& queue) NO_THREAD_SAFETY_ANALYSIS {
  return shard.queue_timers[static_cast<size_t>(queue.database)];
}

// The first of an index, if it is earlier.
void take_earlier(const OrderedIndex<Queue*>& index, int64_t& due, Queue*& queue) {
  if (index.empty() || static_cast<int64_t>(index.front().major) >= due) return;
  due = static_cast<int64_t>(index.front().major);
  queue = index.front().value;
}

// The earliest of all databases by each of the clocks; null: none.
struct Earliest {
  int64_t due_ms = kNeverMs;
  Queue* queue = nullptr;
  int64_t due_steady = kNeverMs;
  Queue* queue_steady = nullptr;

  explicit Earliest(const Shard& shard) NO_THREAD_SAFETY_ANALYSIS {
    for (const QueueTimers& timers : shard.queue_timers) {
      take_earlier(timers.by_time, due_ms, queue);
      take_earlier(timers.by_steady, due_steady, queue_steady);
    }
  }
};

// Keeps its head from being recorded, which would restore the key at replay.
void retire(Queue& queue) {
  queue.head_dirty = true;
  queue.retired = true;
}

}  // namespace

bool QueueTimers::ByKey::operator()(const Queue* a, const Queue* b) const {
  return a->key < b->key;
}

void list_queue_timers(Shard& shard, Queue& queue, bool keeps_due) NO_THREAD_SAFETY_ANALYSIS {
  if (queue.retired) return;
  // A time before the clock's beginning is due at its beginning.
  int64_t due_ms = std::clamp<int64_t>(queue.next_due_ms(), 0, kNothingDue);
  if (keeps_due && queue.listed_due_ms <= queue.queue_ms) {
    due_ms = std::min(due_ms, queue.listed_due_ms);
  }
  const int64_t due_steady = std::max<int64_t>(queue.next_due_steady(), 0);
  QueueTimers& timers = timers_of(shard, queue);
  timers.floor = std::max(timers.floor, floor_over(queue));
  if (queue.listed_due_ms == kNeverMs) timers.by_name.insert(first_bytes(queue.key), 0, &queue);
  if (due_ms != queue.listed_due_ms) {
    relist(timers.by_time, queue.listed_due_ms, due_ms, &queue);
    if (due_ms != kNothingDue) lower(shard.next_due_queue_ms, due_ms);
  }
  if (due_steady != queue.listed_due_steady) {
    relist(timers.by_steady, queue.listed_due_steady, due_steady, &queue);
    lower(shard.next_due_steady_ms, due_steady);
  }
}

Queue* due_queue(Shard& shard, const Times& now) NO_THREAD_SAFETY_ANALYSIS {
  const Earliest first(shard);
  const int64_t lag_ms = now.queue_ms - std::min(first.due_ms, now.queue_ms + 1);
  const int64_t steady_lag_ms = now.steady_ms - std::min(first.due_steady, now.steady_ms + 1);
  if (lag_ms < 0 && steady_lag_ms < 0) return nullptr;
  Queue* queue = lag_ms > steady_lag_ms ? first.queue : first.queue_steady;
  queue->timer_lag_ms = std::max(lag_ms, steady_lag_ms);
  return queue;
}

void set_queue_due_times(Shard& shard) NO_THREAD_SAFETY_ANALYSIS {
  const Earliest first(shard);
  // Only queues use these clocks.
  shard.next_due_queue_ms.store(first.due_ms == kNothingDue ? kNeverMs : first.due_ms,
                                std::memory_order_release);
  const bool looks = shard.adopted != nullptr && shard.adopted->must_look() != nullptr;
  shard.next_due_steady_ms.store(looks ? 0 : first.due_steady, std::memory_order_release);
}

void unlist_queue_timers(Shard& shard, Queue& queue) NO_THREAD_SAFETY_ANALYSIS {
  QueueTimers& timers = timers_of(shard, queue);
  if (queue.listed_due_ms != kNeverMs) {
    const bool was_there = timers.by_name.erase(first_bytes(queue.key), 0, &queue);
    CHECK(was_there);
  }
  relist(timers.by_time, queue.listed_due_ms, kNeverMs, &queue);
  relist(timers.by_steady, queue.listed_due_steady, kNeverMs, &queue);
}

void retire_queue(Shard& shard, Unit& unit, Queue* queue) {
  raise_token_floor(shard, unit, floor_over(*queue));
  std::erase(unit.dirty_queues, queue);
  unlist_queue_timers(shard, *queue);
  retire(*queue);
  unit.retired.push_back(Retired::of(queue));
}

std::vector<Queue*> retire_queues(Shard& shard, Unit& unit,
                                  int database) NO_THREAD_SAFETY_ANALYSIS {
  QueueTimers& timers = shard.queue_timers[static_cast<size_t>(database)];
  std::erase_if(unit.dirty_queues, [&](const Queue* queue) {
    const bool goes = queue->database == database && KeyRef(queue->key).shard == shard.index;
    if (goes) timers.floor = std::max(timers.floor, floor_over(*queue));
    return goes;
  });
  if (timers.by_name.empty()) return {};
  raise_token_floor(shard, unit, timers.floor);
  std::vector<Queue*> adopting;
  if (shard.adopted != nullptr) {
    for (auto at = timers.by_name.begin(); at.valid(); at.next()) {
      if (at.value()->adopted != nullptr) adopting.push_back(at.value());
    }
  }
  // A swap touches none of the queues, however many they are.
  auto gone = std::make_unique<QueueTimers>();
  std::swap(*gone, timers);
  timers.floor = gone->floor;
  unit.retired.push_back(Retired::of(gone.release()));
  return adopting;
}

void raise_token_floor(Shard& shard, Unit& unit, uint64_t token) {
  // The record of the floor follows, if records decide. A queue that never gave a lease needs none.
  if (unit.told || token <= 1) return;
  // Recorded even if the floor is already higher: the unit that raised it may not be in the journal
  // yet.
  if (unit.recording) unit.record().token_floor(token);
  uint64_t floor = shard.token_floor->load(std::memory_order_relaxed);
  while (floor < token &&
         !shard.token_floor->compare_exchange_weak(floor, token, std::memory_order_relaxed)) {
  }
}

void outgrow_tokens(Shard& shard, Unit& unit, int first, int second) NO_THREAD_SAFETY_ANALYSIS {
  if (unit.told) return;  // the heads have been recorded
  std::vector<Queue*> queues;
  uint64_t greatest = 1;
  for (const int database : {first, second}) {
    const QueueTimers& timers = shard.queue_timers[static_cast<size_t>(database)];
    for (auto at = timers.by_name.begin(); at.valid(); at.next()) {
      queues.push_back(at.value());
      greatest = std::max(greatest, floor_over(*at.value()));
    }
  }
  raise_token_floor(shard, unit, greatest);
  // A deleted queue may have had the name as well.
  const uint64_t floor = shard.token_floor->load(std::memory_order_relaxed);
  for (Queue* queue : queues) {
    queue->next_token = std::max(queue->next_token, floor);
    queue->events.renumber_from(floor);
    QueueTimers& timers = timers_of(shard, *queue);
    timers.floor = std::max(timers.floor, floor_over(*queue));
    // Recorded at once: the new numbers must come before events in the rest of the unit.
    record_head(unit, *queue);
  }
}

void tie_client(Shard& shard, uint64_t client_id, const Queue& queue) NO_THREAD_SAFETY_ANALYSIS {
  auto& by_client = shard.tied_clients.by_client;
  by_client[client_id].emplace(queue.database, queue.key);
  shard.tied_connections.store(by_client.size(), std::memory_order_relaxed);
}

void tie_clients(Shard& shard, const Queue& queue) {
  // Visits each connection once, whatever it holds.
  for (auto at = queue.tied.begin(); at.valid(); at = queue.tied.lower_bound(at.major() + 1)) {
    tie_client(shard, at.major(), queue);
  }
}

std::vector<std::pair<int, std::string>> untie_client(Shard& shard, uint64_t client_id,
                                                      size_t most) NO_THREAD_SAFETY_ANALYSIS {
  std::vector<std::pair<int, std::string>> names;
  auto& by_client = shard.tied_clients.by_client;
  const auto found = by_client.find(client_id);
  if (found == by_client.end()) return names;
  TiedClients::Names& left = found->second;
  while (names.size() < most && !left.empty()) {
    names.push_back(std::move(left.extract(left.begin()).value()));
  }
  if (left.empty()) by_client.erase(found);
  shard.tied_connections.store(by_client.size(), std::memory_order_relaxed);
  return names;
}

}  // namespace sluice
