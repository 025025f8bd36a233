// QueueWork: one queue as seen by one unit of work. Its verbs hold the rules of the contract
// (QUEUE.md) and are the only way to change a queue: each changes memory, writes the records,
// appends the events and tells who waits.
//
// A handle of a few pointers, made for each command, never kept. REQUIRES for everything here: the
// lock of the key's shard. Job pointers stay valid until the verb says otherwise (a new payload
// moves the job; what is no longer retained is destroyed).
//
// Expected failures come back as the whole error text of the reply ("QFULL pending=3 ..."), empty
// for success; then nothing has changed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/keyspace/database.h"
#include "engine/queue/dispatch_order.h"
#include "engine/queue/queue.h"
#include "engine/queue/queue_error.h"
#include "engine/queue/queue_records.h"

namespace sluice {

struct RecordedEvent;  // queue_records.h

enum class IfDuplicate : uint8_t { kError, kKeep, kUpdate, kReplace };

// The arguments of Q.ADD. An absent option was not given.
struct JobSpec {
  Bytes id;  // "*": the queue chooses
  Bytes payload;
  std::optional<uint8_t> band;
  std::optional<int64_t> boost_ms;
  std::optional<int64_t> delay_ms;
  std::optional<int64_t> at_ms;  // as given: of the wall clock
  std::optional<Bytes> group;
  std::vector<Bytes> keys;
  std::optional<uint32_t> cost;
  std::optional<int64_t> ttl_ms;
  std::optional<int64_t> lease_ms;
  std::optional<int64_t> max_run_ms;
  std::optional<uint32_t> retry;
  std::optional<std::pair<int64_t, int64_t>> backoff_ms;  // base, max
  IfDuplicate if_duplicate = IfDuplicate::kError;
  std::vector<Bytes> needs;
  std::vector<std::pair<Bytes, Bytes>> tags;
  std::optional<int64_t> max_wait_ms;
};

struct AddOutcome {
  const char* result = "added";  // added, kept, updated, replaced, queued
  Job* job = nullptr;            // the one that the reply tells of
};

// The arguments of Q.POP (and of Q.ACK ... POP) for one queue.
struct PopSpec {
  std::string worker;  // empty: not named
  uint32_t count = 1;
  int64_t lease_ms = -1;  // -1: the job's, else the queue's
  bool tied = false;
  uint64_t cap = 0;  // 0: none
  std::optional<std::string> id;
  std::vector<std::string> match;
  std::string request_token;  // empty: none
};

// Who takes leases: for pushes and TIED.
struct Holder {
  std::shared_ptr<ClientPort> port;
  int protocol = 2;
  uint64_t client_id = 0;
};

struct MoveSpec {
  std::optional<uint8_t> band;
  bool front = false;
  bool back = false;
  std::optional<int64_t> boost_ms;
  std::optional<int64_t> delay_ms;
  std::optional<int64_t> at_ms;  // as given: of the wall clock
};

enum class NackMode : uint8_t { kFail, kFatal, kSilent };

// One code with its figures, for Q.GET and people: "behind 4", "group_cap 2/2". Empty: not waiting.
std::string why_waiting(const Queue& queue, const Job& job, const Times& now, bool has_waiters);

class QueueWork {
 public:
  // `queue` is the object of `entry`, which stands under `key` in `database`.
  QueueWork(Database database, const KeyRef& key, Queue& queue, Unit& unit);
  // Lists the timers of a queue that has changed.
  ~QueueWork();
  QueueWork(const QueueWork&) = delete;
  QueueWork& operator=(const QueueWork&) = delete;

  Queue& queue() { return *queue_; }
  // Queue time of this unit.
  int64_t now_ms() { return queue_->now(unit_->times.queue_ms); }

  // --- Q.ADD ---
  std::string add(const JobSpec& spec, AddOutcome& outcome);

  // --- Q.POP --- Jobs that were made active now (or again, by the same request token), in order.
  // The error is GONE for a pop by ID; otherwise an empty `jobs` means: none now.
  std::string pop(const PopSpec& spec, const Holder& holder, std::vector<Job*>& jobs);
  // The job that pop() would take first, and its place in the dispatch order among several
  // waiters' choices; null: none.
  using Choice = DispatchChoice;
  Choice choose(const PopSpec& spec);

  // --- Ends of a run --- `lease`: the token, or 0 for `*`.
  std::string acknowledge(Bytes id, uint64_t lease, Bytes result);
  struct NackOutcome {
    JobState state{};
    int64_t not_before_ms = 0;  // 0: now
    int64_t attempts_left = 0;
  };
  std::string refuse(Bytes id, uint64_t lease, NackMode mode, std::optional<int64_t> delay_ms,
                     Bytes error, NackOutcome& outcome);
  struct TouchOutcome {
    int64_t left_ms = 0;
    bool cancelled = false;
    std::string cancel_reason;
  };
  std::string touch(Bytes id, uint64_t lease, std::optional<int64_t> lease_ms,
                    const Bytes* progress, const Holder& holder, TouchOutcome& outcome);

  // --- Steering ---
  enum class Cancelled : uint8_t { kCancelled, kSignalled, kGone };
  Cancelled cancel(Job* job, Bytes reason, std::optional<int64_t> grace_ms);
  // False: not waiting. Otherwise the job's new place is its position (null if not pending).
  bool move(Job* job, const MoveSpec& spec);
  // A terminal, retained job waits again, as new: attempt 1, ranked now. False: not terminal.
  bool retry(Job* job);
  // Forgets a terminal job; destroys it.
  void forget(Job* job);

  // --- Configuration ---
  std::string configure(ConfigLevel level, Bytes pattern,
                        std::span<const std::pair<Bytes, Bytes>> fields);
  std::string reset_config(ConfigLevel level, Bytes pattern);
  void count_rejection(Rejection reason) {
    ++queue_->stats.all.totals.rejected[static_cast<size_t>(reason)];
  }

  // --- COPY --- This queue, which is new, gets the configuration and the live jobs of another one.
  // Active ones wait again, as if they had never been popped; leases, statistics, events and what
  // has ended stay behind.
  void take_copy(const Queue& source);

  // --- Timers and connections ---
  // At most `limit` jobs whose time has come: delays, TTLs, leases, run limits, retention. The
  // number of them. And a step of the releases that are under way, and of lost connections.
  size_t run_timers(size_t limit);
  // The connection of tied leases is lost: they end after the grace time. Of many, timers do the
  // rest.
  void connection_lost(uint64_t client_id);

  // Waiting Q.POPs at the key may find a job now. Called by every verb that makes work possible.
  void signal();

 private:
  // --- Q.ADD ---
  // `retained`: a job of this id is there, which has ended.
  std::string add_new(const JobSpec& spec, bool retained, AddOutcome& outcome);
  std::string add_again(const JobSpec& spec, Job* old, AddOutcome& outcome);
  std::string update_waiting(const JobSpec& spec, Job* job, AddOutcome& outcome);
  std::string replace_waiting(const JobSpec& spec, Job* job, AddOutcome& outcome);
  std::string set_successor(const JobSpec& spec, Job* job, AddOutcome& outcome);
  std::string check_unchanged(const JobSpec& spec, const Job& job) const;
  bool is_released_at(const JobSpec& spec, const Job& job) const;
  // The gate of what is given now: `DELAY`, `AT`, or none (0).
  int64_t gate_of(std::optional<int64_t> delay_ms, std::optional<int64_t> at_ms) const;
  // What is kept of an `AT` besides the gate: itself, where queue time says it otherwise.
  int64_t kept_at(std::optional<int64_t> at_ms) const;
  std::string check_cost(const JobSpec& spec) const;
  std::string check_pause(Paused paused);
  std::string check_group_room(const Queue::NamedGroup& group);
  std::string check_other_group(const Queue::NamedGroup& group, const Job& job);
  // Somebody else may be cancelled to make room for a job that runs then; not for one that could
  // not run either (and may need the very one that went), or that is refused all the same.
  enum class Newcomer : uint8_t { kRuns, kBlocked, kTooLate };
  std::string check_room(const Queue::NamedGroup& group, uint8_t band, Newcomer newcomer);
  std::string check_wait(const JobSpec& spec, uint8_t band, const Queue::NamedGroup& group);
  const Lane* find_lane(const JobSpec& spec, uint8_t band) const;
  size_t waiting_pops();
  std::string check_needs(const JobSpec& spec, std::vector<std::string>& unmet);
  Job* find_displaced(uint8_t band) const;
  Job* build(const JobSpec& spec, uint8_t band, Bytes id, const Queue::NamedGroup& group,
             std::vector<std::string> unmet);
  void place_new(Job* job);
  void copy_job(const Job& source);
  std::string refused(Rejection reason, const QueueError& error);
  std::string full_error(uint64_t max);

  // --- Runs ---
  void admit(Job* job, const PopSpec& spec, const Holder& holder);
  bool repeat_pop(const PopSpec& spec, const Holder& holder, std::vector<Job*>& jobs);
  bool slots_fit(const Job& job, const PopSpec& spec) const;
  Choice choose_by_id(const PopSpec& spec);
  std::string find_leased(Bytes id, uint64_t lease, Job*& job);
  // Ends the run of an active job: slots, charge, statistics. It is left unplaced, without its run.
  // `counts`: the run says how long jobs take.
  JobRun end_run(Job* job, bool counts);
  // The three ways on from there; each places the job again, records it, and may destroy it.
  void finish(Job* job, JobState state, Bytes error, Bytes result, const JobRun* run);
  void tell_end(const Job& job);
  void go_back(Job* job, int64_t gate_ms, EventType event, const EventFields& fields);
  void become_successor(Job* job, EventType ended, const EventFields& fields);
  void count_added(const Job& job);
  static void merge_options(JobExtras& extras, const JobOptions& given);
  // Beyond RETRY: failed. Else back after the delay, or after a random part of the backoff.
  void fail_attempt(Job* job, const JobRun& run, Bytes error, std::optional<int64_t> delay_ms);
  int64_t backoff_ms(const Job& job, const JobRun& run) const;
  void lose_lease(Job* job);
  void exceed_run(Job* job);
  Job* first_dependent(const std::string& need) const;
  void resolve_needs(const std::string& id, bool completed);
  void meet_need(Job* job, const std::string& need);
  void fail_need(Job* job, const std::string& need);
  void begin_release(const std::string& need, bool completed);
  void go_on_with_releases();
  void adapt();
  void signal_cancel(Job* job, Bytes reason, std::optional<int64_t> grace_ms);
  void push_cancel(const Job& job, const JobRun& run, Bytes reason);
  // `end`: how it has ended if the job is null.
  void describe_nack(const Job* job, JobState end, NackOutcome& outcome) const;
  void give_tokens_back(Job* job);
  void config_changed(ConfigLevel level, Bytes pattern, const ConfigChange& change);
  void record_bound(const std::vector<Lanes::BoundRate>& bound);
  size_t run_leases(size_t limit);
  bool shorten_leases(LostConnection& lost, size_t& left);
  void go_on_with_lost();

  // --- Waiting ---
  // Sets the state from the gate, and places the job.
  void place_waiting(Job* job);
  void unplace_waiting(Job* job);
  // A pending job makes its group backlogged. Before place().
  void join_backlog(const Job& job);
  // The budget of time that it may spend pending runs, and stands still. Of a job in its place;
  // true: that is a change.
  bool start_ttl(Job* job);
  bool stop_ttl(Job* job);
  static int64_t ttl_left_ms(const Job& job, int64_t now_ms);
  // A LIFO lane has a ticket or a job more or less, which shows another job as pending or delayed:
  // its budget follows, and is recorded. `own`: is recorded by the caller; may be null.
  void follow_tickets(const Lane& lane, const Job* own);
  static void rank_by_release(Job* job);
  // A LIFO job takes the ticket that it owns, for good.
  void settle(Job* job);
  void change_lane(Job* job, uint8_t band, bool bound);
  void change_lane(Job* job, uint8_t band, Bytes group, std::span<const Bytes> keys, bool bound);
  void drop_retained(size_t limit);

  // --- Records --- The job's present value with an event (kNone: without).
  void record_put(Job* job, EventType event, const EventFields& fields = {});
  void record_state(Job* job, EventType event, const EventFields& fields = {});
  void record_job(const Job& job, EffectType type, const RecordedEvent& event);
  void record_gone(Bytes id, EventType event, const EventFields& fields = {});
  void record_limits(const Job& job);
  void record_share(ConfigLevel level, Bytes name, double virtual_ms, const Limiter& limiter);
  void record_release(const Release& release, RecordedRelease what);
  void record_own_share();  // the queue's virtual time and rate
  RecordedEvent next_event(Bytes id, EventType event, const EventFields& fields);
  // `encode(ByteBuffer&)` appends the value; it is not called where nothing is recorded.
  template <class Encode>
  void write(EffectType type, Bytes field, Encode encode) {
    unit_->record_queue(type, database_.index(), key_.key, field, encode);
    wrote(type, field);
  }
  void wrote(EffectType type, Bytes field);
  void touched();

  Database database_;
  KeyRef key_;
  Queue* queue_;
  Unit* unit_;
  bool changed_ = false;
  // Needs that have ended otherwise than completed, whose dependents resolve_needs() has still to
  // end; those of the last one first.
  std::vector<std::string> failed_needs_;
  // What telling dependents of ends has cost; further ones are left to releases.
  size_t told_ = 0;
  bool resolving_ = false;
  // A group that has just become backlogged; its share is recorded behind its job.
  Group* owed_share_ = nullptr;
  // A pending job is taken out of its place only to get another one: its group's share stays.
  bool still_backlogged_ = false;
};

}  // namespace sluice
