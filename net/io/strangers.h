// Strangers: the connections of one I/O thread that have not shown a password or token where one is
// asked for, the oldest first. Where there is room for no further connection, the oldest of them
// gives way to the next.
//
// Threads: the own thread's, but for what is under "Any thread".
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "engine/keyspace/shard.h"
#include "net/io/io_thread.h"
#include "net/process/clocks.h"

namespace sluice {

// Above half of the limit of connections, strangers are cut off after this long a silence.
inline constexpr int64_t kStrangerPatienceMs = 10'000;
// Of one thread: that have been told to give way, and still have their descriptors.
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
  // Those that have been here, and have said nothing, for longer than this, as long as `crowded`
  // says so.
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
  // Since when the one that would give way next has been here; kNeverMs: there is none.
  int64_t oldest_ms() const {
    return count_.load(std::memory_order_relaxed) > giving_way_.load(std::memory_order_relaxed)
               ? oldest_ms_.load(std::memory_order_relaxed)
               : kNeverMs;
  }
  bool may_give_way() const { return giving_way_.load(std::memory_order_relaxed) < kMostGivingWay; }
  size_t giving_way() const { return giving_way_.load(std::memory_order_acquire); }
  // Closes the oldest, in a while.
  void give_way() {
    giving_way_.fetch_add(1, std::memory_order_relaxed);
    thread_.post([this] {
      thread_.levels().run_outermost([this] {
        if (!waiting_.empty()) close_oldest();
        // Afterwards, so that it is never missing in both counts of make_room().
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

// Who could give way to a further connection.
enum class Way : uint8_t { kOpen, kLater, kNobody };

// Of all threads; `chosen` has the oldest of those that may give way now.
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

// Tells one to give way, if it can.
template <class Connection>
bool make_way(const std::vector<Strangers<Connection>*>& threads) {
  Strangers<Connection>* chosen = nullptr;
  if (find_way(threads, &chosen) != Way::kOpen) return false;
  chosen->give_way();
  return true;
}

// Whether a further connection may come in though there are as many as `limit`. Each one above it
// needs one that gives way. Who was told so may have authenticated instead, and stays: then the
// further one is refused, and the one that was told in its stead makes up for it.
template <class Connection>
bool make_room(const std::vector<Strangers<Connection>*>& threads,
               const std::atomic<uint64_t>& connected, uint64_t limit) {
  if (!make_way(threads)) return false;
  uint64_t allowed = limit;
  for (const Strangers<Connection>* strangers : threads) allowed += strangers->giving_way();
  return connected.load(std::memory_order_relaxed) < allowed;
}

}  // namespace sluice
