// Engine: all shards, and what commands share: users, channels, scripts, statistics. No sockets, no
// disk, no clock: time comes in with each batch.
//
// Threads: every member says. Connections talk to it through an Execution
// (engine/execution/execution.h), one for each I/O thread.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/adopted/adopted_state.h"
#include "engine/base/log_pace.h"
#include "engine/base/queue_clock.h"
#include "engine/base/reclaimer.h"
#include "engine/base/times.h"
#include "engine/clients/client.h"
#include "engine/clients/client_pause.h"
#include "engine/execution/departures.h"
#include "engine/execution/scripts.h"
#include "engine/keyspace/shard.h"
#include "engine/ports/event_spill.h"
#include "engine/ports/journal.h"
#include "engine/ports/server_port.h"

namespace sluice {

class Acl;
class AclLog;
class Execution;
class LatencyMonitor;
class Monitors;
class PubSub;
class SlowLog;
class Tracking;

// Who may use DEBUG (enable-debug-command).
enum class DebugAccess : uint8_t { kNobody, kLocal, kEverybody };

// What CONFIG SET may change while commands run: plain atomics, read by any thread.
struct RuntimeOptions {
  std::atomic<uint64_t> max_memory_bytes{0};
  std::atomic<uint64_t> slow_log_max_entries{128};
  std::atomic<uint64_t> acl_log_max_entries{128};
  std::atomic<uint64_t> tracking_table_max_keys{1'000'000};
  std::atomic<int64_t> busy_reply_threshold_ms{5000};
  std::atomic<uint64_t> script_memory_limit_bytes{256U << 20};
  std::atomic<uint64_t> max_bulk_bytes{512U << 20};
  std::atomic<DebugAccess> debug_access{DebugAccess::kNobody};
  // Below the free space that the operator set: what grows is refused (storage sets it).
  std::atomic<bool> disk_nearly_full{false};
};

// Engine::observing: somebody tracks keys (CLIENT TRACKING).
inline constexpr uint32_t kObserveTracking = 1U << 31;

// The earliest time at which something is due, by each of the clocks (kNeverMs: nothing).
struct DueTimes {
  int64_t wall_ms = kNeverMs;
  int64_t queue_ms = kNeverMs;
  int64_t steady_ms = kNeverMs;

  bool operator==(const DueTimes&) const = default;
  bool nothing() const {
    return wall_ms == kNeverMs && queue_ms == kNeverMs && steady_ms == kNeverMs;
  }
  // Milliseconds from now until the earliest one; not negative.
  int64_t wait_ms(const Times& now) const {
    const auto left = [](int64_t due_ms, int64_t now_ms) {
      return due_ms == kNeverMs ? kNeverMs : due_ms > now_ms ? due_ms - now_ms : 0;
    };
    return std::min(
        {left(wall_ms, now.wall_ms), left(queue_ms, now.queue_ms), left(steady_ms, now.steady_ms)});
  }
};

class Engine {
 public:
  virtual ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Before the first command and after recovery. Null: nothing is journaled. Outlives the engine's
  // use.
  // Commands that run while the data is loaded (INFO, CONFIG) may look at it already.
  void attach_journal(Journal* journal) { journal_.store(journal, std::memory_order_release); }
  Journal* journal() const { return journal_.load(std::memory_order_acquire); }

  // Before recovery: older events of queues leave the memory for it.
  void spill_events_to(std::shared_ptr<EventSpill> spill);

  // Recovery: the returned object applies records to this engine; nothing else may use it
  // meanwhile.
  std::unique_ptr<Replay> begin_replay();
  // While it lives: shards are filled without their locks, so nobody may look at keys. Any thread.
  std::atomic<bool> replaying{false};
  // A fuzzy walk over everything, any thread. One at a time.
  std::unique_ptr<CheckpointWalk> begin_walk();

  Shard& shard(unsigned index) { return shards_[index]; }
  Shards& shards() { return shards_; }
  ServerPort& server() { return server_; }
  RuntimeOptions& options() { return options_; }
  Acl& acl() { return *acl_; }
  AclLog& acl_log() { return *acl_log_; }
  AdoptedState& adopted() { return adopted_; }
  // Requests of HTTP at the port of Redis: each minute one is told in the log. By
  // ServerPort::steady_time_us.
  LogPace attacks_in_log;
  PubSub& pubsub() { return *pubsub_; }
  Scripts& scripts() { return *scripts_; }
  SlowLog& slow_log() { return *slow_log_; }
  Monitors& monitors() { return *monitors_; }
  LatencyMonitor& latency_monitor() { return *latency_monitor_; }
  Tracking& tracking() { return *tracking_; }

  // --- Ends of blocking and of connections: by the connection's own thread, between batches ---
  // Ends a blocked command without its reply (time-out, CLIENT UNBLOCK); false if it has been
  // claimed already: then its reply is on the way. Locks the waiter's shards; client.waiter is null
  // afterwards if true. None of these waits for a script: what a locked shard still knows of the
  // client is left to departures().
  bool cancel_waiter(Client& client);
  // The reply of the blocked command has arrived: forgets the waiter at its other keys.
  void end_waiter(Client& client);
  // The connection is gone: it waits, watches, and listens to nothing any more.
  void disconnect(Client& client);
  Departures& departures() { return departures_; }
  // Where units leave what they have retired. Any thread.
  Reclaimer& reclaimer() { return reclaimer_; }
  // Locks a shard, unless a script is busy meanwhile, which may hold it for as long as it likes.
  // Not for threads that hold shards.
  bool lock_patiently(Shard& shard) TRY_ACQUIRE(true, shard.mutex);

  // When Execution::run_timers has something to do next. Any thread.
  DueTimes next_due() const;
  // Keys in a database / state changes since the start / expired keys. Any thread.
  uint64_t key_count(int database) const;
  std::atomic<uint64_t> changes{0};
  std::atomic<uint64_t> expired_keys{0};
  // Look-ups of commands that only read, over all threads.
  uint64_t keyspace_hits();
  uint64_t keyspace_misses();

  // Every lease of a queue that is made later is at least this: tokens of a name never go back, so
  // it rises when a queue is deleted (engine/keyspace/queue_timers.h).
  std::atomic<uint64_t> token_floor{1};

  // What queues go by. Started by whoever reads the clocks, after all times that recovery has
  // found.
  QueueClock queue_clock;
  // Of a `*` in Q.ADD, since the start: with the time they are names that come once.
  std::atomic<uint64_t> generated_ids{0};

  // Shards with queues that owe turns to waiting pops (engine/keyspace/waiter.h): run_timers has
  // something to do. Set and cleared under the shard's lock; any thread reads it.
  std::atomic<ShardMask> owing_shards{0};

  // From how many processor ticks on a command is slow for SLOWLOG, for LATENCY (UINT64_MAX:
  // never), and for either of them: the hot path looks at the last only.
  std::atomic<uint64_t> slow_log_ticks{UINT64_MAX};
  std::atomic<uint64_t> latency_event_ticks{UINT64_MAX};
  std::atomic<uint64_t> slow_ticks{UINT64_MAX};
  // Negative: none / 0: none. One thread at a time sets these.
  void set_slow_log_threshold_us(int64_t threshold_us);
  void set_latency_threshold_ms(int64_t threshold_ms);

  // Nanoseconds of a tick as a binary fraction (CommandStat::kScaleBits); 0: no histograms
  // (latency-tracking). For the hot path.
  std::atomic<uint64_t> latency_scale{0};
  void set_latency_tracking(bool on);

  // A script runs longer than the threshold: everything else answers BUSY. Set by the script
  // engine.
  std::atomic<bool> script_busy{false};

  // What somebody wants to know of keys, as bits of KeyspaceEvents and kObserveTracking; 0:
  // nothing, and then no unit has an observer. Any thread reads it.
  std::atomic<uint32_t> observing{0};
  // Somebody tracks keys, or nobody does any more.
  void observe_tracking();
  // notify-keyspace-events: `events` as there. Without K and E nothing is published.
  void set_notified_events(uint32_t events);

  // CLIENT PAUSE.
  ClientPause pause;

  // CONFIG RESETSTAT: the counters that INFO shows. Writers may add to them meanwhile.
  void reset_stats();

  // Executions register themselves, so that INFO can add up their statistics.
  void add_execution(Execution* execution);
  void remove_execution(Execution* execution);
  void for_each_execution(const std::function<void(Execution&)>& visit);

 protected:
  // What the floors above add is handed in: CompleteEngine does it (engine/commands/). The port
  // outlives the engine.
  Engine(ServerPort& server, uint64_t hash_seed, MakeScripts make_scripts);

 private:
  ServerPort& server_;
  std::atomic<Journal*> journal_{nullptr};
  RuntimeOptions options_;
  std::shared_ptr<EventSpill> event_spill_;
  Shards shards_;
  Reclaimer reclaimer_;
  Departures departures_;
  std::unique_ptr<Acl> acl_;
  std::unique_ptr<AclLog> acl_log_;
  AdoptedState adopted_;
  std::unique_ptr<PubSub> pubsub_;
  std::unique_ptr<Scripts> scripts_;
  std::unique_ptr<SlowLog> slow_log_;
  std::unique_ptr<Monitors> monitors_;
  std::unique_ptr<LatencyMonitor> latency_monitor_;
  std::unique_ptr<Tracking> tracking_;
  Mutex executions_mutex_;
  std::vector<Execution*> executions_ GUARDED_BY(executions_mutex_);
};

}  // namespace sluice
