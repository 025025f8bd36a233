// Execution: runs the commands of one I/O thread, a batch at a time, with as few lock holds as the
// batch allows.
//
// A batch: the connection passes each parsed request to execute(), which locks the shards of its
// keys unless they are locked already, runs the row's checks and its handler. finish() appends the
// changes to the journal as one unit, unlocks, and delivers messages to other connections. While it
// holds shards, it locks further ones only by try_lock; if that fails, it ends the hold and locks
// in ascending order. It also ends the hold after 64 requests. With several I/O threads it holds
// one request's shards at a time (`set_hold_shards`). One thread uses an Execution.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/times.h"
#include "engine/execution/call.h"
#include "engine/execution/engine.h"
#include "engine/execution/key_observer.h"
#include "engine/execution/request.h"
#include "engine/reply/reply.h"
#include "engine/reply/statistics.h"

namespace sluice {

class QueueWork;

class Execution {
 public:
  explicit Execution(Engine& engine);
  ~Execution();
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;

  // Whether shards stay locked from one request of a batch to the next, even if that needs others.
  void set_hold_shards(bool hold) { hold_shards_ = hold; }
  // For an Execution that runs inside a command of the same thread which waits or is slow, and may
  // hold shards: it locks none, and replies BUSY if a command needs any.
  void set_nested_in_another() { nested_in_another_ = true; }
  // Sets the clocks for the next requests. The I/O thread reads them once for a batch. All
  // executions of an engine use the same clocks.
  void set_times(const Times& times) {
    steady_ms_ = times.steady_ms;
    times_ = times;
    times_.steady_ms = engine_.lease_clock_ms(steady_ms_);
    access_s_ = Entry::access_second(times_.steady_ms);
  }
  // The same if the wall clock is never stepped: queue time equals it.
  void set_now_ms(int64_t now_ms) { set_times(Times::agreeing(now_ms, steady_ms_)); }
  int64_t now_ms() const { return times_.wall_ms; }
  int64_t steady_ms() const { return steady_ms_; }

  // Runs one request of `client`: writes its reply, queues it (MULTI), or blocks the client
  // (client.waiter is set then, and no reply written).
  void execute(Client& client, const Request& request, RespReply& reply);
  // Whether a pause suspends this request. Notes the request in `client` then.
  bool must_wait(Client& client, const Request& request);
  // Whether the request reads or changes data, or runs queued requests that may.
  static bool concerns_data(const Client& client, const Command& command);

  // Until finish(), what requests show may not be durable yet, and never become so: for those that
  // are answered while nothing becomes durable, which show counts (not concerns_data). What they
  // change is waited for nevertheless.
  void tell_at_once() { tells_at_once_ = true; }
  // Ends the lock hold. Every reply written since the last finish() may be sent once the journal's
  // durable lsn has reached the result.
  Lsn finish();

  // Whether the requests since the last finish() have run so long that others should run.
  bool is_long() const { return batch_ticks_ >= long_ticks_; }

  // Locks every shard: until finish() nobody else changes what a few requests see. Locks none if a
  // script holds them: the requests will be refused.
  void lock_all();
  // Whether a key holds a value of this type. That remains true for a request that is executed
  // before finish(), because every shard stays locked. Returns true if a script holds the shards:
  // the request will be refused.
  bool lock_if_type(int database, Bytes name, Type type);

  // Runs another command inside this one, under the present locks: EXEC, scripts, waiters. The
  // shards of its keys must be locked. The caller checks arity and permissions (check()). Returns
  // the processor's ticks that it took.
  uint64_t run_nested(Client& client, const Command& command, std::span<const Bytes> args,
                      Reply& reply);

  // Puts an entry that was made elsewhere, replacing the value of its key. Returns false if there
  // was one. Part of the lock hold like a command: finish() ends it.
  bool put_entry(int database, OwnedEntry entry);

  // The checks before every command: arity, permissions, memory. `logs`: a denial goes to ACL LOG.
  Status check(Client& client, const Command& command, std::span<const Bytes> args, bool logs);

  // Locks the shards of `mask` in addition to those held. Ends the current hold if it must wait.
  void lock(ShardMask mask);
  // The same, but while a script is busy it locks only free shards. For commands that run
  // nevertheless (kAllowBusy): they need the shards only for WATCH, and can do without.
  void lock_unless_busy(ShardMask mask);
  ShardMask locked() const { return locked_; }
  // For a script that accesses undeclared keys: locks further shards and keeps those that are held.
  // Returns false if one could not be locked within a short time.
  bool lock_further(ShardMask mask);
  // Unlocks all shards, inside a command that waits for another thread (SAVE). Earlier commands of
  // the batch may still hold some.
  void release() { end_hold(); }
  // The shards of all the command's keys, or all shards if its row says so. `first_key` may already
  // hold the first key.
  ShardMask shards_of(const Command& command, std::span<const Bytes> args, KeyRef& first_key);
  Unit& unit() { return unit_; }
  Engine& engine() { return engine_; }

  // For the records of another node (engine/execution/follower.h): locks shards and begins a unit
  // in which records decide.
  Unit& begin_told(ShardMask mask);
  // Ends it: lists the timers of its queues and serves those who wait to read. It is the unit with
  // this lsn; nothing is journaled.
  void end_told(Lsn lsn);

  // Deletes expired keys, runs due timers of queues, and serves waiters of those and owed turns, a
  // bounded number in each lock hold. Returns true if more is due already.
  bool run_timers(const Times& now);

  // Serves some of the waiters whose time is over (Departures::leave_late), as run_timers() does.
  // Called between batches, with the clocks set.
  void serve_late();

  // The connection is closed, see Engine::disconnect(); its tied leases end after their grace.
  // Called between batches, with the clocks set.
  void disconnect(Client& client);

  // Serves waiters of keys that this unit made ready. Called after each command, and once after
  // EXEC and scripts. Pops at queues have a budget for each batch; run_timers continues with them.
  void serve_waiters();

  Statistics statistics;
  // The command was refused with the last error in the reply.
  void note_rejected(const Command& command, Reply& reply);

 private:
  // Checks the command: unknown command or subcommand, arity, state. Returns false with the error
  // replied.
  bool admit(Client& client, const Request& request, RespReply& reply);
  void reject(Client& client, const Command* command, Bytes message, RespReply& reply);
  void warn_of_attack(const Client& client);
  void run(Client& client, const Request& request, RespReply& reply);
  void lock_for(Client& client, const Request& request, KeyRef& first_key);
  bool busy() const;
  Status refuse_writes(const Command& command, std::span<const Bytes> args);
  bool may_change_data(const Client& client, const Command& command, std::span<const Bytes> args);
  // Sets time, journal and observers of the unit, under the locks.
  void begin_unit();
  void observe();
  // Runs the handler, and updates statistics, SLOWLOG and MONITOR.
  uint64_t handle(Call& call);
  // Tracking of keys, around a command.
  void remember_reads(const Call& call);
  void end_tracked(Client& client, const Command& command, RespReply& reply);
  // CLIENT CACHING concerns the next command only, whether that runs or is refused. `command`:
  // null if it is unknown.
  static void end_caching(Client& client, const Command* command);
  void show_to_monitors(const Call& call);
  void note_slow(const Call& call, uint64_t ticks);
  // For LATENCY, if it took long enough.
  void note_latency_event(Bytes event, uint64_t ticks);
  void log_slow(const Call& call, uint64_t ticks);
  void serve_ready(const SignalledKey& ready);
  void serve_queue(const SignalledKey& ready);
  // Null if there is no queue.
  const Queue* queue_at(const SignalledKey& ready);
  // Serves pops of a queue within the batch's remaining budget; further ones get turns.
  void serve_pops(const SignalledKey& ready);
  void serve_pop(const SignalledKey& ready, QueueWork& work, const std::shared_ptr<Waiter>& waiter);
  void spend_serving(size_t cost);
  void owe(const SignalledKey& ready);
  // Answers waiters within the batch's remaining budget; the others are due.
  void answer(const SignalledKey& ready, std::span<const std::shared_ptr<Waiter>> concerned);
  // Gives what is owed, alternating between shards and queues. Each pop that gets something has
  // its own unit.
  void serve_owed();
  void answer_due(const SignalledKey& owed);
  void read_on(const SignalledKey& owed);
  void serve_turns(const SignalledKey& owed);
  void pass_over(const SignalledKey& owed, const std::shared_ptr<Waiter>& waiter);
  std::shared_ptr<Waiter> claim_waiter(const SignalledKey& ready, const Entry* entry);
  // Runs the command of a claimed waiter.
  void serve(const Waiter& waiter, Bytes key);
  // --- Adopted keys (Q.ADOPT), engine/execution/execution_adopted.cc ---
  // The shards that a command on these keys needs besides those of `mask`, as far as the locked
  // shards show. `only_key`: the only key that it can change; null: it may change others.
  ShardMask adopted_shards(ShardMask mask, const KeyRef* only_key) const;
  void lock_adopted(ShardMask mask, const KeyRef* only_key);
  // Locks a shard, and those of the queues that show its keys.
  void lock_with_adopted(unsigned index);
  // Turns changes of adopted keys into transitions of their queues' jobs.
  void settle_adopted();
  // Goes on with a look at adopted keys.
  void look_at_adopted(Shard& shard);
  void run_adopted_timers(Queue& queue);
  // Records the pending heads of queues.
  void record_heads();
  // One shard's part of run_timers, under its lock.
  void expire_keys(Shard& shard);
  void run_due_queue(Shard& shard);
  void end_hold();
  Lsn append_unit();
  void wait_for(Shard& shard) ACQUIRE(shard.mutex);
  // Waits until it has the lock or a script is busy. REQUIRES: no shard is locked.
  bool try_to_lock(unsigned index);
  // `names`: the most queues to process, reduced by those processed; some may be left for later.
  void end_ties(Shard& shard, uint64_t client_id, size_t& names);
  void leave_ties(Shard& shard, uint64_t client_id);

  Engine& engine_;
  Unit unit_;
  KeyObserver observer_;
  Times times_;  // as units see them: the steady clock is that of leases
  int64_t steady_ms_ = 0;
  uint32_t access_s_ = Entry::kFirstAccess;
  ShardMask locked_ = 0;
  Lsn gate_ = 0;
  unsigned held_requests_ = 0;
  const uint64_t long_ticks_;
  uint64_t batch_ticks_ = 0;
  bool hold_shards_ = false;
  bool nested_in_another_ = false;
  bool tells_at_once_ = false;
  std::vector<KeyPosition> key_positions_;
  Client waiter_client_;
  // The remaining budget of this batch for serving pops; when it is used up, others run.
  static constexpr size_t kServingOfBatch = 128;
  size_t serving_left_ = kServingOfBatch;
  unsigned next_owing_ = 0;  // the shard that is served first
};

}  // namespace sluice
