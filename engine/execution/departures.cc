#include "engine/execution/departures.h"

#include "engine/execution/engine.h"
#include "engine/execution/transaction.h"

namespace sluice {

void Departures::leave(std::shared_ptr<Waiter> waiter, std::vector<std::string> keys) {
  MutexLock lock(mutex_);
  departures_.push_back({std::move(waiter), std::move(keys), nullptr, {}});
  waiting_.store(true, std::memory_order_relaxed);
}

void Departures::leave(std::unique_ptr<WatchSet> set, std::vector<WatchedKey> watched) {
  MutexLock lock(mutex_);
  departures_.push_back({nullptr, {}, std::move(set), std::move(watched)});
  waiting_.store(true, std::memory_order_relaxed);
}

void Departures::leave_ties(unsigned shard, uint64_t client_id) {
  MutexLock lock(mutex_);
  ties_.emplace_back(shard, client_id);
}

std::vector<uint64_t> Departures::take_ties(unsigned shard) {
  std::vector<uint64_t> clients;
  MutexLock lock(mutex_);
  std::erase_if(ties_, [&](const auto& tie) {
    if (tie.first == shard) clients.push_back(tie.second);
    return tie.first == shard;
  });
  return clients;
}

void Departures::leave_late(std::shared_ptr<Waiter> waiter) {
  MutexLock lock(mutex_);
  late_.push_back(std::move(waiter));
  has_late_.store(true, std::memory_order_release);
}

std::vector<std::shared_ptr<Waiter>> Departures::take_late(size_t limit) {
  std::vector<std::shared_ptr<Waiter>> late;
  MutexLock lock(mutex_);
  while (!late_.empty() && late.size() < limit) {
    late.push_back(std::move(late_.front()));
    late_.pop_front();
  }
  has_late_.store(!late_.empty(), std::memory_order_release);
  return late;
}

// Returns whether it was removed from all lists.
bool Departures::settle_one(Engine& engine, Departure& departure) {
  std::erase_if(departure.keys, [&](const std::string& key) {
    Shard& shard = engine.shard(KeyRef(key).shard);
    if (!shard.mutex.try_lock()) return false;
    shard.waiters.remove(key, departure.waiter.get());
    shard.mutex.unlock();
    return true;
  });
  std::erase_if(departure.watched, [&](const WatchedKey& watched) {
    Shard& shard = engine.shard(KeyRef(watched.key).shard);
    if (!shard.mutex.try_lock()) return false;
    forget_watcher(shard, watched, departure.watch_set.get());
    shard.mutex.unlock();
    return true;
  });
  return departure.keys.empty() && departure.watched.empty();
}

void Departures::settle(Engine& engine) {
  // Another thread is doing it.
  if (!mutex_.try_lock()) return;
  std::erase_if(departures_, [&](Departure& departure) { return settle_one(engine, departure); });
  waiting_.store(!departures_.empty(), std::memory_order_relaxed);
  mutex_.unlock();
}

}  // namespace sluice
