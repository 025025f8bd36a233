// Execution: runs the commands of one I/O thread, a batch at a time, with as few lock holds as the
// batch allows.
//
// The life of a batch: the connection hands over each parsed request by execute(); the shards of
// its keys are locked if they are not already; the row's checks and its handler run; finish()
// appends what changed to the journal as one unit, unlocks, and delivers to other connections.
// While it holds shards it takes further ones by try_lock only (so the ascending order that
// blocking locks keep is never needed between two batches), and it lets go after 64 requests. With
// several I/O threads it holds one request's shards at a time (`set_hold_shards`). One thread uses
// an Execution.
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

  // Keep shards locked from one request of a batch to the next, even if they differ.
  void set_hold_shards(bool hold) { hold_shards_ = hold; }
  // This one runs inside a command of the same thread that waits or is slow, and that may hold
  // shards: it locks none, and answers BUSY to whoever needs some.
  void set_nested_in_another() { nested_in_another_ = true; }
  // The clocks for what follows; the I/O thread reads them once a batch. All executions of an
  // engine go by the same clocks.
  void set_times(const Times& times) {
    times_ = times;
    access_s_ = Entry::access_second(times.steady_ms);
  }
  // The same where the wall clock is never stepped: queue time is what it says.
  void set_now_ms(int64_t now_ms) { set_times(Times::agreeing(now_ms, times_.steady_ms)); }
  int64_t now_ms() const { return times_.wall_ms; }
  void set_steady_ms(int64_t steady_ms) { set_times(Times::agreeing(times_.wall_ms, steady_ms)); }
  int64_t steady_ms() const { return times_.steady_ms; }

  // Runs one request of `client`, which may write its reply, queue it (MULTI), or block the client
  // (client.waiter is set then, and no reply written).
  void execute(Client& client, const Request& request, RespReply& reply);
  // A CLIENT PAUSE lets this request wait; `client` says what it has asked for then.
  bool must_wait(Client& client, const Request& request);

  // Ends the lock hold. Every reply written since the last finish() may leave once the journal's
  // durable lsn has reached the result.
  Lsn finish();

  // The requests since the last finish() have run for as long as others may wait for them.
  bool is_long() const { return batch_ticks_ >= long_ticks_; }

  // Whether a key holds a value of this type. A request that is executed before finish() finds it
  // so: every shard stays locked. True where a script keeps them, and the request will be refused.
  bool lock_if_type(int database, Bytes name, Type type);

  // Runs another command inside this one, under the locks that are held: EXEC, scripts, waiters.
  // The shards of its keys must be locked. Checks of arity and rights are the caller's (check()).
  void run_nested(Client& client, const Command& command, std::span<const Bytes> args,
                  Reply& reply);

  // Puts an entry that was made outside of any command in place of what is at its key. False: there
  // was something. A part of the hold, as a command would be: finish() ends it.
  bool put_entry(int database, OwnedEntry entry);

  // What stands before every command: arity, rights, memory. Empty: go on; else the error to reply.
  std::string check(Client& client, const Command& command, std::span<const Bytes> args);

  // Locks the shards of `mask` besides those held. Ends the current hold if it must wait.
  void lock(ShardMask mask);
  // The same, but while a script is busy it takes only those that are free. For the commands that
  // run all the same (kAllowBusy): they are about WATCH, and do without the others.
  void lock_unless_busy(ShardMask mask);
  ShardMask locked() const { return locked_; }
  // For a script that reaches for keys it has not declared: takes further shards and keeps those
  // that are held. False if one could not be had within a short time.
  bool lock_further(ShardMask mask);
  // Lets go of all shards, inside a command that waits for another thread (SAVE): what came before
  // it in the batch may still hold some.
  void release() { end_hold(); }
  // Shards of all the command's keys; all of them for rows that say so. `first_key` may be that of
  // these words already.
  ShardMask shards_of(const Command& command, std::span<const Bytes> args, KeyRef& first_key);
  Unit& unit() { return unit_; }
  Engine& engine() { return engine_; }

  // Deletes keys whose time has come, does what is due in queues and serves who waits for it or is
  // owed jobs, a bounded number in each lock hold. True: more is due already.
  bool run_timers(const Times& now);

  // The connection is gone, as Engine::disconnect() says; its tied leases end after their grace.
  // Between batches, with the clocks set.
  void disconnect(Client& client);

  // Serves waiters of keys that this unit made ready. Called after each command, and once after
  // EXEC and scripts. Of pops at queues so many in a batch; run_timers goes on with them.
  void serve_waiters();

  CommandStat& stat(const Command& command) { return stats_[command.id]; }
  // Who writes a reply of this thread lets it count its errors here.
  ErrorCounts& error_counts() { return error_counts_; }
  // The command was refused with the error that the reply has got last.
  void note_rejected(const Command& command, Reply& reply);
  // A blocked command has been answered with an error.
  void note_failed(const Command& command) { add_one(stat(command).failed); }
  std::span<CommandStat> stats() { return {stats_.get(), stat_count_}; }
  // Any thread; a command that ends at the same moment may write its old number back.
  void reset_stats();
  std::atomic<uint64_t> commands_processed{0};
  std::atomic<uint64_t> keyspace_hits{0};
  std::atomic<uint64_t> keyspace_misses{0};
  // Look-ups of commands that only read, for INFO.
  void count_lookup(bool hit) {
    std::atomic<uint64_t>& counter = hit ? keyspace_hits : keyspace_misses;
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

 private:
  // False with the error replied: unknown command or subcommand, arity, not now.
  bool admit(Client& client, const Request& request, RespReply& reply);
  void reject(Client& client, const Command* command, Bytes message, RespReply& reply);
  void warn_of_attack(const Client& client);
  void run(Client& client, const Request& request, RespReply& reply);
  void lock_for(Client& client, const Request& request, KeyRef& first_key);
  bool busy() const;
  bool may_change_data(const Client& client, const Command& command, std::span<const Bytes> args);
  // Time, journal and observers for what runs now, under the locks.
  void begin_unit();
  void observe();
  // Runs the handler, with statistics, SLOWLOG and MONITOR around it.
  void handle(Call& call);
  // What tracks keys, around a command.
  void remember_reads(const Call& call);
  void end_tracked(Client& client, const Command& command, RespReply& reply);
  void show_to_monitors(const Call& call);
  void note_slow(const Call& call, uint64_t ticks);
  // For LATENCY, if it took that long.
  void note_latency_event(Bytes event, uint64_t ticks);
  void log_slow(const Call& call, uint64_t ticks);
  void serve_ready(const SignalledKey& ready);
  void serve_queue(const SignalledKey& ready);
  // Pops of a queue, by what is left of the batch's share; further ones get turns.
  void serve_pops(const SignalledKey& ready);
  void serve_pop(const SignalledKey& ready, QueueWork& work, const std::shared_ptr<Waiter>& waiter);
  void spend_serving(size_t cost);
  void owe(const SignalledKey& ready);
  // The turns that are owed, of queues and shards by turns; who gets something has its own unit.
  void serve_owed();
  void serve_turns(const SignalledKey& owed);
  void pass_over(const SignalledKey& owed, const std::shared_ptr<Waiter>& waiter);
  std::shared_ptr<Waiter> claim_waiter(const SignalledKey& ready, const Entry* entry);
  // Runs the command of a waiter that has been claimed.
  void serve(const Waiter& waiter, Bytes key);
  // --- Keys that queues show (Q.ADOPT), engine/execution/execution_adopted.cc ---
  // The shards that a command on these keys needs besides those of `mask`, as far as the shards
  // that are locked say. `only_key`: all that it can change; null: it may have others.
  ShardMask adopted_shards(ShardMask mask, const KeyRef* only_key) const;
  void lock_adopted(ShardMask mask, const KeyRef* only_key);
  // What has changed of them becomes what has happened to their queues' jobs.
  void settle_adopted();
  void look_at_missed(Shard& shard);
  void run_adopted_timers(Queue& queue);
  // The records of queues' heads that the unit still owes.
  void record_heads();
  // One shard's part of run_timers, under its lock.
  void expire_keys(Shard& shard);
  void run_due_queue(Shard& shard);
  void end_hold();
  Lsn append_unit();
  void wait_for(Shard& shard) ACQUIRE(shard.mutex);
  // Waits as long as no script is busy. REQUIRES: nothing is locked.
  bool try_to_lock(unsigned index);
  // `names`: of how many queues at most, less by those; some may be left for later.
  void end_ties(Shard& shard, uint64_t client_id, size_t& names);
  void leave_ties(Shard& shard, uint64_t client_id);

  Engine& engine_;
  Unit unit_;
  KeyObserver observer_;
  Times times_;
  uint32_t access_s_ = Entry::kFirstAccess;
  ShardMask locked_ = 0;
  Lsn gate_ = 0;
  unsigned held_requests_ = 0;
  const uint64_t long_ticks_;
  uint64_t batch_ticks_ = 0;
  bool hold_shards_ = false;
  bool nested_in_another_ = false;
  std::unique_ptr<CommandStat[]> stats_;
  size_t stat_count_ = 0;
  ErrorCounts error_counts_;
  std::vector<KeyPosition> key_positions_;
  Client waiter_client_;
  // What serving of pops may still cost in this batch: then others run.
  static constexpr size_t kServingOfBatch = 128;
  size_t serving_left_ = kServingOfBatch;
  unsigned next_owing_ = 0;  // the shard that is looked at first
};

}  // namespace sluice
