// Strangers: the connections of one I/O thread that have not authenticated although a password or
// token is required, ordered by age. When there is no room for a new connection, the oldest of them
// is closed.
//
// Threads: used by the own thread, except what is under "Any thread".
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "engine/keyspace/shard.h"
#include "net/io/io_thread.h"
#include "net/process/clocks.h"

namespace sluice {

// Above half of the connection limit, strangers are closed after this time without activity.
inline constexpr int64_t kStrangerPatienceMs = 10'000;
// Maximum per thread of strangers that were told to close and still hold their descriptors.
inline constexpr size_t kMostGivingWay = 8;

template <class Connection>
class Strangers {
 public:
  explicit Strangers(IoThread& thread) : thread_(thread) {}

  void add(Connection& connection) {
    if (connection.stranger_since_ms != 0) return;
    connection.stranger_since_ms = Clocks::steady_ms();
    waiting_.emplace(connection.stranger_since_ms, &connection);
    publish();
  }
  void remove(Connection& connection) {
    if (connection.stranger_since_ms == 0) return;
    waiting_.erase({connection.stranger_since_ms, &connection});
    connection.stranger_since_ms = 0;
    publish();
  }
  bool empty() const { return waiting_.empty(); }
  // Closes those that have been connected and silent for longer than this, while `crowded` holds.
  template <class Crowded>
  void close_silent(int64_t patience_ms, Crowded crowded) {
    const int64_t before_ms = Clocks::steady_ms() - patience_ms;
    for (auto at = waiting_.begin(); at != waiting_.end() && at->first < before_ms && crowded();) {
      Connection& connection = *at->second;
      ++at;
      if (connection.active_ms() >= before_ms) continue;
      remove(connection);
      connection.close();
    }
  }

  // --- Any thread ---
  // When the next one to be closed connected; kNeverMs without strangers.
  int64_t oldest_ms() const {
    return count_.load(std::memory_order_relaxed) > giving_way_.load(std::memory_order_relaxed)
               ? oldest_ms_.load(std::memory_order_relaxed)
               : kNeverMs;
  }
  bool may_give_way() const { return giving_way_.load(std::memory_order_relaxed) < kMostGivingWay; }
  size_t giving_way() const { return giving_way_.load(std::memory_order_acquire); }
  // Closes the oldest one soon.
  void give_way() {
    giving_way_.fetch_add(1, std::memory_order_relaxed);
    thread_.post([this] {
      thread_.levels().run_outermost([this] {
        if (!waiting_.empty()) close_oldest();
        // Decremented last, so that it is always included in one of the two counts of make_room().
        giving_way_.fetch_sub(1, std::memory_order_release);
      });
    });
  }

 private:
  void close_oldest() {
    Connection& oldest = *waiting_.begin()->second;
    remove(oldest);
    oldest.close();
  }
  void publish() {
    count_.store(waiting_.size(), std::memory_order_relaxed);
    if (!waiting_.empty()) {
      oldest_ms_.store(waiting_.begin()->first, std::memory_order_relaxed);
    }
  }

  IoThread& thread_;
  std::set<std::pair<int64_t, Connection*>> waiting_;
  std::atomic<size_t> count_{0};
  std::atomic<size_t> giving_way_{0};
  std::atomic<int64_t> oldest_ms_{0};
};

// The ways to make room for a new connection.
enum class Way : uint8_t { kOpen, kLater, kNobody };

// Over all threads; `chosen` is the thread with the oldest stranger that may be closed now.
template <class Connection>
Way find_way(const std::vector<Strangers<Connection>*>& threads,
             Strangers<Connection>** chosen = nullptr) {
  Strangers<Connection>* oldest = nullptr;
  bool later = false;
  for (Strangers<Connection>* strangers : threads) {
    if (strangers->oldest_ms() == kNeverMs) continue;
    later = true;
    if (!strangers->may_give_way()) continue;
    if (oldest == nullptr || strangers->oldest_ms() < oldest->oldest_ms()) oldest = strangers;
  }
  if (chosen != nullptr) *chosen = oldest;
  if (oldest != nullptr) return Way::kOpen;
  return later ? Way::kLater : Way::kNobody;
}

// Tells one stranger to close, if possible.
template <class Connection>
bool make_way(const std::vector<Strangers<Connection>*>& threads) {
  Strangers<Connection>* chosen = nullptr;
  if (find_way(threads, &chosen) != Way::kOpen) return false;
  chosen->give_way();
  return true;
}

// Whether a new connection may be accepted although there are `limit` already. Each connection
// above the limit needs a stranger that closes. A stranger told to close may have authenticated
// instead, and stays: then the new connection is refused, and the next stranger told to close makes
// up for it.
template <class Connection>
bool make_room(const std::vector<Strangers<Connection>*>& threads,
               const std::atomic<uint64_t>& connected, uint64_t limit) {
  if (!make_way(threads)) return false;
  uint64_t allowed = limit;
  for (const Strangers<Connection>* strangers : threads) allowed += strangers->giving_way();
  return connected.load(std::memory_order_relaxed) < allowed;
}

}  // namespace sluice
