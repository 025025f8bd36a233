// Engine: all shards, and the state that commands share: users, channels, scripts, statistics. No
// sockets, no disk, no clock: the time is set with each batch.
//
// Threads: noted at each member. Connections use it through an Execution
// (engine/execution/execution.h), one for each I/O thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
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
#include "engine/ports/group_port.h"
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

// Clients that may use DEBUG (enable-debug-command).
enum class DebugAccess : uint8_t { kNobody, kLocal, kEverybody };

// Options that CONFIG SET may change while commands run: plain atomics, read by any thread.
struct RuntimeOptions {
  std::atomic<uint64_t> max_memory_bytes{0};
  std::atomic<uint64_t> slow_log_max_entries{128};
  std::atomic<uint64_t> acl_log_max_entries{128};
  std::atomic<uint64_t> tracking_table_max_keys{1'000'000};
  std::atomic<int64_t> busy_reply_threshold_ms{5000};
  std::atomic<uint64_t> script_memory_limit_bytes{256U << 20};
  std::atomic<uint64_t> max_bulk_bytes{512U << 20};
  // What the arguments of a command that changes data may have together, with those before it in
  // its transaction. 0: no limit.
  std::atomic<uint64_t> max_request_bytes{0};
  // What a request may change at once, as records of the journal. 0: no limit.
  std::atomic<uint64_t> max_change_bytes{0};
  std::atomic<DebugAccess> debug_access{DebugAccess::kNobody};
  // The disk has less free space than configured: commands that grow the data are refused. Set by
  // storage.
  std::atomic<bool> disk_nearly_full{false};
  // The room in the replicated log. Set by the server's group.
  std::atomic<LogRoom> log_room{LogRoom::kAll};
};

// Engine::observing: some client tracks keys (CLIENT TRACKING).
inline constexpr uint32_t kObserveTracking = 1U << 31;

// The earliest time at which something is due, by each of the clocks, or kNeverMs.
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

  // Called before the first command and after recovery. Null: nothing is journaled. The journal
  // must outlive the engine's use. Commands that run while the data is loaded (INFO, CONFIG) may
  // read it earlier.
  void attach_journal(Journal* journal) { journal_.store(journal, std::memory_order_release); }
  Journal* journal() const { return journal_.load(std::memory_order_acquire); }

  // Called before recovery: older events of queues are moved there from memory.
  void spill_events_to(std::shared_ptr<EventSpill> spill);

  // Recovery: the returned object applies records to this engine. Nothing else may use the engine
  // meanwhile.
  std::unique_ptr<Replay> begin_replay();
  // True while that object exists: shards are filled without their locks, so keys must not be read.
  // Thread-safe.
  std::atomic<bool> replaying{false};
  // A standby: records of another node change the data (engine/execution/follower.h), commands that
  // write are refused, nothing expires or becomes due by itself. Set under the locks of all shards.
  std::atomic<bool> following{false};
  // When the clock of leases begins, by the steady clock: INT64_MAX while the engine follows, the
  // moment at which it has taken over, else 0. So every lease then gets its whole term again.
  // Negative: it stands, at -1 minus this.
  std::atomic<int64_t> leases_begin_ms{0};
  // The clock of leases, Times::steady_ms in every unit.
  int64_t lease_clock_ms(int64_t steady_ms) const {
    const int64_t begin_ms = leases_begin_ms.load(std::memory_order_relaxed);
    if (begin_ms < 0) return -1 - begin_ms;
    return steady_ms > begin_ms ? steady_ms - begin_ms : 0;
  }
  // While a primary can acknowledge nothing, nobody can extend a lease: the clock stands from now
  // on, until it resumes. Without effect while the engine follows. By one thread.
  void stop_lease_clock(int64_t steady_ms);
  // True if it stood: the caller arms the timer for next_due().
  bool resume_lease_clock(int64_t steady_ms);
  // A fuzzy walk over everything, for any thread. Only one at a time.
  std::unique_ptr<CheckpointWalk> begin_walk();

  Shard& shard(unsigned index) { return shards_[index]; }
  Shards& shards() { return shards_; }
  ServerPort& server() { return server_; }
  RuntimeOptions& options() { return options_; }
  Acl& acl() { return *acl_; }
  AclLog& acl_log() { return *acl_log_; }
  AdoptedState& adopted() { return adopted_; }
  // HTTP requests at Redis's port are logged, one a minute. By ServerPort::steady_time_us.
  LogPace attacks_in_log;
  PubSub& pubsub() { return *pubsub_; }
  Scripts& scripts() { return *scripts_; }
  SlowLog& slow_log() { return *slow_log_; }
  Monitors& monitors() { return *monitors_; }
  LatencyMonitor& latency_monitor() { return *latency_monitor_; }
  Tracking& tracking() { return *tracking_; }

  // --- Ends of blocking and of connections ---
  // Called by the connection's own thread, between batches. None of these waits for a script:
  // entries of the client in locked shards are left to departures().
  // Ends a blocked command without its reply (time-out, CLIENT UNBLOCK). Returns false if it has
  // already been claimed: then its reply is on the way. Locks the waiter's shards. If it returns
  // true, client.waiter is null.
  bool cancel_waiter(Client& client);
  // The reply of the blocked command has arrived: removes the waiter from its other keys.
  void end_waiter(Client& client);
  // The connection is closed: ends its waiting, watching and subscriptions.
  void disconnect(Client& client);
  Departures& departures() { return departures_; }
  // Frees what units have retired. Thread-safe.
  Reclaimer& reclaimer() { return reclaimer_; }
  // Locks a shard, unless a script becomes busy meanwhile, which may hold it for as long as it
  // likes. Not for threads that hold shards.
  bool lock_patiently(Shard& shard) TRY_ACQUIRE(true, shard.mutex);

  // When Execution::run_timers next has work. Thread-safe.
  DueTimes next_due() const;
  // Keys in a database, state changes since the start, expired keys. Thread-safe.
  uint64_t key_count(int database) const;
  std::atomic<uint64_t> changes{0};
  std::atomic<uint64_t> expired_keys{0};
  // Look-ups of commands that only read, over all threads.
  uint64_t keyspace_hits();
  uint64_t keyspace_misses();

  // Lower bound for the tokens of queues that are created later. It rises when a queue is deleted,
  // because tokens of a name must never decrease (engine/keyspace/queue_timers.h).
  std::atomic<uint64_t> token_floor{1};

  // The clock of queues. Started by the code that reads the clocks, after all times that recovery
  // has found.
  QueueClock queue_clock;
  // The number of ids for `*` in Q.ADD since the start. With the time they form unique names.
  std::atomic<uint64_t> generated_ids{0};

  // Shards with queues that owe turns to waiting pops (engine/keyspace/waiter.h), for run_timers.
  // Changed under the shard's lock; read by any thread.
  std::atomic<ShardMask> owing_shards{0};

  // The number of processor ticks from which a command is slow for SLOWLOG, for LATENCY
  // (UINT64_MAX: never), and for either of them. The hot path reads only the last one.
  std::atomic<uint64_t> slow_log_ticks{UINT64_MAX};
  std::atomic<uint64_t> latency_event_ticks{UINT64_MAX};
  std::atomic<uint64_t> slow_ticks{UINT64_MAX};
  // A negative slow log threshold, or a latency threshold of 0, turns logging off. Called by one
  // thread at a time.
  void set_slow_log_threshold_us(int64_t threshold_us);
  void set_latency_threshold_ms(int64_t threshold_ms);

  // Nanoseconds of a tick as a binary fraction (CommandStat::kScaleBits), for the hot path; 0: no
  // histograms (latency-tracking).
  std::atomic<uint64_t> latency_scale{0};
  void set_latency_tracking(bool on);

  // A script has run longer than the threshold: everything else replies BUSY. Set by the script
  // engine.
  std::atomic<bool> script_busy{false};

  // The observed changes of keys, as bits of KeyspaceEvents and kObserveTracking. If it is 0, no
  // unit has an observer. Read by any thread.
  std::atomic<uint32_t> observing{0};
  // Updates kObserveTracking after a client has begun or ended tracking.
  void observe_tracking();
  // The flags of notify-keyspace-events. Without K and E nothing is published.
  void set_notified_events(uint32_t events);

  // CLIENT PAUSE.
  ClientPause pause;

  // CONFIG RESETSTAT: resets the counters of INFO. Other threads may increment them meanwhile.
  void reset_stats();

  // Executions register here, so that INFO can add up their statistics.
  void add_execution(Execution* execution);
  void remove_execution(Execution* execution);
  void for_each_execution(const std::function<void(Execution&)>& visit);

 protected:
  // `make_scripts` is passed in by a higher floor: CompleteEngine (engine/commands/). The port must
  // outlive the engine.
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
