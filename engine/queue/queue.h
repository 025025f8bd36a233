// Queue: the value of a key of type `queue`: its configuration, its jobs in every state, their
// order, leases, timers, totals, event log.
//
// A passive state: it keeps its indexes consistent (place, unplace) and answers questions. The
// rules of the contract and the records for the journal are in the verbs (engine/work). Records
// (queue_records.h) are applied by the same place and unplace. Guarded by the lock of the key's
// shard.
//
// Invariants (check() verifies them):
// 1. Every job is in `jobs` by its id, and in exactly the indexes of its state.
// 2. Slots in use are the sum of the costs of active jobs, for the queue, each group and each key.
// 3. Every gauge is the size of an index.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/queue/arrivals.h"
#include "engine/queue/event_log.h"
#include "engine/queue/job.h"
#include "engine/queue/lanes.h"
#include "engine/queue/limiters.h"
#include "engine/queue/progress_pace.h"
#include "engine/queue/queue_config.h"
#include "engine/queue/queue_stats.h"
#include "engine/queue/releases.h"
#include "engine/queue/waiting_pops.h"
#include "engine/queue/workers.h"
#include "engine/structures/ordered_index.h"
#include "engine/structures/split_map.h"

namespace sluice {

// The index of an ended job in Queue::ended.
inline size_t ended_kind(JobState state) {
  return state == JobState::kCompleted || state == JobState::kCancelled ? 0 : 1;
}

// A lost connection, some of whose tied leases must still be shortened.
struct LostConnection {
  uint64_t client_id = 0;
  uint64_t next_token = 0;    // leases with smaller tokens are done
  int64_t due_steady = 0;     // when to continue
  int64_t latest_steady = 0;  // when its leases end at the latest
};

class AdoptedKeys;
struct Capacity;
class Forecast;
struct ForecastPlace;

class Queue {
 public:
  Queue();
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  QueueConfig config;
  SplitMap<Job, JobTraits> jobs;
  Lanes lanes;
  Limiter limiter;  // of the whole queue; max_active is the effective one (adaptive)
  EventLog events;
  QueueStats stats;
  // Not null: it has adopted plain Redis keys (Q.ADOPT) and has no jobs of its own.
  std::unique_ptr<AdoptedKeys> adopted;

  // --- Contents of the head record besides the totals ---
  int64_t queue_ms = 0;     // the greatest queue time used here
  uint64_t next_seq = 1;    // arrival order
  uint64_t next_token = 1;  // leases
  uint64_t next_finish = 1;
  uint64_t adaptive_runs = 0;  // completions since the last adaptation; not journaled
  static constexpr uint64_t kRunsToAdapt = 100;  // then `adaptive` checks the mean
  uint64_t adaptive_max = 0;  // effective max_active while `adaptive` is set; 0: not begun
  // It is in Unit::dirty_queues; then, whether its virtual time or rate has changed as well.
  bool head_dirty = false;
  bool share_dirty = false;

  // Queue time for the present lock holder: an earlier holder may have read the clock later.
  int64_t now(int64_t read_ms) { return queue_ms = std::max(queue_ms, read_ms); }

  // --- Indexes of jobs ---
  Job* find(Bytes id, uint64_t id_hash) const { return jobs.find(id, id_hash); }
  Job* find(Bytes id) const { return find(id, hash_bytes(id)); }
  // Puts a job, all of whose fields are set, into the map and the indexes of its state, or takes it
  // out. That includes slots (an active job holds its slots), but not rate tokens.
  void insert(Job* job, uint64_t id_hash);
  void insert(Job* job) { insert(job, hash_bytes(job->id())); }
  void erase(Job* job);  // and destroys it
  // The same without the map of ids, for changing the job's fields.
  void place(Job* job);
  void unplace(Job* job);
  // Until end_replay() jobs are only in the map of ids: records come in any order, and most are
  // superseded by later ones, so the indexes are filled once, in their own order. Orders, counts
  // and slots must not be read before. For a queue without jobs.
  void begin_replay() { arrivals_ = std::make_unique<Arrivals>(); }
  bool is_replaying() const { return arrivals_ != nullptr; }
  // Calls `pulse` repeatedly.
  void end_replay(const std::function<void()>& pulse);
  // The end of a unit of records that were applied to the indexes themselves (a standby).
  void end_told();
  // Allocates a job for the same id with a new payload. `job` must be unplaced; the new one is
  // returned unplaced.
  Job* replace_payload(Job* job, Bytes payload);
  // Sets when the TTL of a placed waiting job expires, in queue time; 0: the TTL is not running.
  void set_ttl_due(Job* job, int64_t due_ms);
  // Sets the progress that the worker of an active job has reported.
  void set_progress(Job* job, Bytes progress);
  // Writes into the log of a placed job, as JobLog::write() does.
  void write_log(Job* job, uint64_t at, Bytes bytes, uint64_t kept_from);
  // Takes the log of a placed job away. Null: it has none.
  std::unique_ptr<JobLog> take_log(Job* job);
  // Events about the progress of jobs; null while there has been none for a second.
  std::unique_ptr<ProgressPace> progress_pace;
  // The job has a `progress` event now.
  void pace_progress(Bytes id);
  // Sets when the lease of an active job expires.
  void set_deadline(Job* job, int64_t deadline_steady);
  // Ties the lease of an active job to this connection.
  void tie(Job* job, uint64_t client_id);
  // The configuration that applies to a group, which need not have jobs.
  GroupConfig group_config(Bytes name) const;
  // The group of a new job: its configuration, and the number of its jobs.
  struct NamedGroup {
    Bytes name;
    GroupConfig config;
    uint64_t waiting = 0;
    uint64_t active = 0;
  };
  NamedGroup named_group(Bytes name) const;
  // The lane for a job of this band with this group and keys.
  Lane* join_lane(uint8_t band, const NamedGroup& group, std::span<const Bytes> keys, bool bound);
  Lane* join_lane(uint8_t band, Bytes group, std::span<const Bytes> keys, bool bound) {
    return join_lane(band, named_group(group), keys, bound);
  }

  // --- By state ---
  // Each index with its keys.
  OrderedIndex<Job*> delays;  // (gate_ms, seq)
  OrderedIndex<Job*> ttls;    // shown as pending, with a TTL: (ttl_due_ms, arrival)
  OrderedIndex<Job*> leases;  // active: (due_steady, token)
  OrderedIndex<Job*> runs;    // active: (started_ms, token), oldest first
  OrderedIndex<Job*> tied;    // active, with a connection: (tied_client_id, token)
  // Ended jobs, oldest first: (finish_order, finished_ms), so that retention reads only jobs that
  // it drops. [0] completed and cancelled, [1] failed and expired.
  std::array<OrderedIndex<Job*>, 2> ended;
  std::array<uint64_t, 2> ended_bytes{};
  // The id of a job -> the blocked jobs that wait for its completion (NEED, dependents) or for any
  // end of it (AFTER, followers), by (rank_key, seq). Hold only ids with waiting jobs.
  using Awaiting = std::unordered_map<std::string, OrderedIndex<Job*>>;
  Awaiting dependents;
  Awaiting followers;
  Awaiting& awaiting(bool after) { return after ? followers : dependents; }
  // Blocked jobs that have still to be released because what they need has ended.
  Releases releases;
  // Moves all dependents or followers of this id to a release. `number` is greater than that of
  // every arrival. REQUIRES: there are some.
  const Release& begin_release(uint64_t number, const std::string& need, bool after,
                               bool completed);
  // The same for records, during a replay in whatever state: a release is in progress; it has
  // ended.
  void add_release(uint64_t number, const std::string& need, bool after, bool completed);
  void drop_release(uint64_t number, const std::string& need);

  // --- Connections ---
  // The oldest first.
  std::vector<LostConnection> lost_connections;

  // --- Workers ---
  Workers workers;
  // A worker has spoken. Null for one without a name.
  Worker* hear_worker(Bytes name);
  void hear_worker(Worker* worker);
  // When rules for the names of workers are looked at next.
  int64_t rules_due_ms = 0;

  // Visits the lines of statistics that count a job: those of the queue, its band and its tags.
  template <class Visit>
  void for_each_stats_line(const Job& job, Visit visit) {
    visit(stats.all);
    visit(stats.band(job.band));
    if (job.options() == nullptr) return;
    for (const auto& [name, value] : job.options()->tags) {
      if (StatsLine* line = stats.tag(name, value)) visit(*line);
    }
  }

  // --- Gauges ---
  uint64_t count(JobState state) const { return counts_[static_cast<size_t>(state)]; }
  // Jobs that have not ended.
  uint64_t live_jobs() const { return jobs.size() - ended[0].size() - ended[1].size(); }
  uint64_t successors = 0;
  uint64_t waiting() const {
    return count(JobState::kBlocked) + count(JobState::kDelayed) + count(JobState::kPending) +
           successors;
  }

  // --- LIFO tickets ---
  // The ticket that a job owns: its own, or in a LIFO lane the k-th earliest for the k-th newest
  // job. A ticket is named by its original job.
  Job* owned_ticket(const Job* job) const;
  // The inverse: the job that owns a pending or delayed ticket.
  static Job* ticket_owner(Job* ticket);
  // The state that clients see: a pending job whose ticket is not due is delayed.
  JobState shown_state(const Job* job) const;
  // Exchanges the tickets of two jobs of one LIFO lane. Both are unplaced; their states move with
  // the tickets.
  static void exchange_tickets(Job* a, Job* b);

  // --- Order ---
  // The number of pending jobs before it by (band, rank). REQUIRES: shown_state is pending.
  uint64_t position(const Job* job) const;
  // What an ETA depends on besides the queue.
  struct EtaView {
    int64_t now_ms = 0;
    const WaitingPops* pops = nullptr;  // null: none waits
  };
  // When dispatch would start a job if no job were added; -1: unknown. REQUIRES: shown_state is
  // pending, and this is its position.
  int64_t eta_ms(const Job* job, uint64_t position, const EtaView& view) const;
  // The same for a new job with these keys and this many pending jobs before it.
  int64_t eta_ms(const ForecastPlace& place, std::span<const Bytes> keys, uint64_t position,
                 const EtaView& view) const;
  // By the position alone, as if neither shares nor caps of groups and keys decided, and no pop
  // waited.
  int64_t eta_at(uint64_t position, int64_t now_ms) const;
  // Every pop that waits has found nothing among the jobs that had arrived by now.
  void pops_found_nothing();
  // Pops that wait may find something among them again.
  void offer_again() { offered_seq_ = 0; }
  // Applies rates that have refilled before the timers, which then offer what they allow.
  void run_rates_early(int64_t now_ms) { refilled_early_ |= lanes.run_rates(now_ms); }
  // The timers have run: pops that wait are served next.
  void run_rates_for_pops() {
    lanes.run_rates(queue_ms);
    refilled_early_ = false;
  }
  // The slots for new admissions; 0: no limit.
  uint64_t max_active() const { return limiter.max_active; }
  // Applies a change of the configuration: to the queue at once, to groups and keys as in
  // Lanes::reconfigure, about `steps` of them now and the others by timers.
  void reconfigure(const ConfigChange& change, size_t steps, std::vector<Lanes::BoundRate>* bound);
  // The same for a change that a record has made. Outside of a replay, end_told() applies one of a
  // whole level, once for all of them in a unit.
  void take_told(const ConfigChange& change);
  // Applies the limits of the queue alone.
  void take_own_limits();

  // --- Timers ---
  // The earliest queue time / steady time at which run_queue_timers() has work.
  int64_t next_due_ms() const;
  int64_t next_due_steady() const;
  // Whether retention drops ended jobs of this kind, by number or bytes.
  bool retains_too_much(size_t kind) const;
  // How many ended jobs of this kind `bound` drops. By bytes at most `most` are counted.
  struct Dropped {
    uint64_t count = 0;
    bool complete = true;
  };
  Dropped count_dropped(size_t kind, const Retention& bound, int64_t now_ms, size_t most) const;
  // The times under which the shard lists the queue (engine/keyspace/queue_timers.h).
  int64_t listed_due_ms = INT64_MAX;
  int64_t listed_due_steady = INT64_MAX;
  // Its key is deleted. The queue is freed when the unit has ended (retire_queue()).
  bool retired = false;
  // How late the timers last ran, in milliseconds, for Q.STATS.
  int64_t timer_lag_ms = 0;
  // Its own key and Database::index(), for timers.
  std::string key;
  int database = 0;

  // Its memory on the heap. Maintained, so that reading it examines no job, lane or rule.
  size_t memory_bytes() const;
  // Verifies the invariants; for tests.
  void check();

 private:
  void count_in(const Job* job, bool in);
  void count_tags(const Job* job, uint64_t one);
  // Changes the log of a placed job, and what counts its bytes.
  template <class Change>
  void change_log(Job* job, Change change);
  void check_gauges();
  void place_all(const Arrivals& arrivals, const std::function<void()>& pulse);
  // Whether it can be the last job of its band without being in its order (Band::later).
  void place_later(Job* job);
  void unplace_later(Job* job);
  void insert_ttl(Job* job);
  void erase_ttl(Job* job);
  void place_active(Job* job);
  void unplace_active(Job* job);
  void unplace_blocked(Job* job);
  // All jobs that wait for this id, which are taken out of their indexes, and put back where they
  // belong.
  std::vector<Job*> take_awaiting(const std::string& need, bool after);
  void put_awaiting(const std::string& need, const std::vector<Job*>& waiting);
  void insert_tied(Job* job);
  void erase_tied(Job* job);
  // The index of a blocked job that waits for this need.
  OrderedIndex<Job*>& dependents_of(const std::string& need, const Job* job);
  void add_awaiting(const std::string& need, Job* job);
  void forget_awaiting(Awaiting& all, Awaiting::iterator at);
  void check_dependents();

  // --- ETA ---
  // What an ETA depends on besides the place of the job.
  struct EtaNow {
    int64_t now_ms = 0;
    size_t pops = 0;         // those that wait and accept the job
    size_t pops_of_all = 0;  // and those of them that accept every job
    uint64_t arrived = 0;    // at least the jobs before it that they may still take
    bool is_new = false;     // it is not pending yet
  };
  EtaNow eta_now(std::span<const Bytes> keys, const EtaView& view) const;
  uint64_t arrived_since(uint64_t arrival) const;
  int64_t eta_of(const ForecastPlace& place, uint64_t position, const EtaNow& now) const;
  int64_t eta_by_position(uint64_t position, const Capacity& capacity, int64_t now_ms) const;
  // `has_newcomer`: a job that may be added has room.
  Capacity capacity(size_t pops, bool has_newcomer) const;
  bool has_eligible() const;
  // Whether the queue itself holds jobs back, and so any later one, too: by its rate, its reserve,
  // or for a large job that is first.
  bool holds_all() const;
  // Jobs that arrived before were offered to every pop that waits, and each was passed over for
  // its own keys or group.
  uint64_t offered_seq_ = 0;
  bool refilled_early_ = false;
  // Made on demand; may be null.
  mutable std::unique_ptr<Forecast> forecast_;

  std::unique_ptr<Arrivals> arrivals_;  // null: it is not replaying
  std::array<bool, 2> told_levels_{};   // of groups, of keys: their configuration has changed
  std::array<uint64_t, kJobStates> counts_{};
  size_t job_bytes_ = 0;       // of all jobs: Job::memory_bytes(), without the map of ids
  size_t awaiting_bytes_ = 0;  // of dependents, followers, and the indexes of releases
};

}  // namespace sluice
