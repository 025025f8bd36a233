// Queue: the value behind a key of type `queue`: its configuration, its jobs in every state, the
// order in which they go, leases, timers, totals, event log.
//
// A passive state: it keeps its indexes consistent (place, unplace) and answers questions. Rules of
// the contract and records for the journal are verbs (engine/work); replay
// (queue_records.h) goes through the same place and unplace. Guarded by the lock of the key's
// shard.
//
// Invariants (check() verifies them):
// 1. Every job is in `jobs` by its id, and in exactly the indexes of its state.
// 2. Slots in use are the sum of the costs of active jobs, for the queue, each group and each key.
// 3. Every gauge is the size of an index.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/queue/event_log.h"
#include "engine/queue/job.h"
#include "engine/queue/lanes.h"
#include "engine/queue/limiters.h"
#include "engine/queue/queue_config.h"
#include "engine/queue/queue_stats.h"
#include "engine/queue/releases.h"
#include "engine/structures/ordered_index.h"
#include "engine/structures/split_map.h"

namespace sluice {

// A worker that holds leases. Forgotten when it holds none any more.
struct Worker {
  std::string name;
  std::string request_token;  // of its last pop with REQID
  std::vector<Job*> active;
};

// A connection that is lost, some of whose tied leases have still to be shortened.
struct LostConnection {
  uint64_t client_id = 0;
  uint64_t next_token = 0;    // those before are
  int64_t due_steady = 0;     // when to go on with it
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
  // Not null: it shows plain Redis keys (Q.ADOPT) and has no jobs of its own.
  std::unique_ptr<AdoptedKeys> adopted;

  // --- What the head record holds besides the totals ---
  int64_t queue_ms = 0;     // the greatest queue time used here
  uint64_t next_seq = 1;    // arrival order
  uint64_t next_token = 1;  // leases
  uint64_t next_finish = 1;
  uint64_t adaptive_runs = 0;  // completions since it was last adapted; not journaled
  uint64_t adaptive_max = 0;   // effective max_active where `adaptive` is set; 0: not begun
  // It is among Unit::dirty_queues.
  bool head_dirty = false;

  // The queue time of who holds the lock now: another thread that has read the clock later may have
  // held it before.
  int64_t now(int64_t read_ms) { return queue_ms = std::max(queue_ms, read_ms); }

  // --- Indexes of jobs ---
  Job* find(Bytes id, uint64_t id_hash) const { return jobs.find(id, id_hash); }
  Job* find(Bytes id) const { return find(id, hash_bytes(id)); }
  // Puts a job, all of whose fields are set, into the map and the indexes of its state; takes it
  // out of them. Slots are part of that (an active job holds its slots), rate tokens are not.
  void insert(Job* job, uint64_t id_hash);
  void insert(Job* job) { insert(job, hash_bytes(job->id())); }
  void erase(Job* job);  // and destroys it
  // The same without the map of ids, around a change of the job's fields.
  void place(Job* job);
  void unplace(Job* job);
  // Until end_replay() jobs stand in the map of ids alone: records come in any order and most of
  // what they say is overtaken by a later one, so the indexes are filled once, in their own order.
  // Nobody may ask for an order, a count or a slot before. For a queue without jobs.
  void begin_replay() { replaying_ = true; }
  // Calls `pulse` again and again meanwhile.
  void end_replay(const std::function<void()>& pulse);
  // Another allocation for the same id (a new payload). `job` must be unplaced; the new one is
  // returned unplaced.
  Job* replace_payload(Job* job, Bytes payload);
  // The TTL of a waiting job that is in its place ends at this queue time; 0: it does not run.
  void set_ttl_due(Job* job, int64_t due_ms);
  // What the worker of an active job says of how far it is.
  void set_progress(Job* job, Bytes progress);
  // The lease of an active job ends at another time.
  void set_deadline(Job* job, int64_t deadline_steady);
  // The lease of an active job goes with this connection.
  void tie(Job* job, uint64_t client_id);
  // What counts for a group, with jobs or without.
  GroupConfig group_config(Bytes name) const;
  // The group of a newcomer: what counts for it, and how many jobs it has already.
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

  // --- By state --- keys as named
  OrderedIndex<Job*> delays;  // (gate_ms, seq)
  OrderedIndex<Job*> ttls;    // shown as pending, with a TTL: (ttl_due_ms, arrival)
  OrderedIndex<Job*> leases;  // active: (due_steady, token)
  OrderedIndex<Job*> runs;    // active: (started_ms, token), oldest first
  OrderedIndex<Job*> tied;    // active, with a connection: (tied_client_id, token)
  // Terminal, oldest first: (finish_order, finished_ms), so that retention looks at no job that
  // stays. [0] completed and cancelled, [1] failed and expired.
  std::array<OrderedIndex<Job*>, 2> ended;
  std::array<uint64_t, 2> ended_bytes{};
  // A need's id -> the blocked jobs that wait for the job of this id, by (rank_key, seq). Only
  // needs that somebody waits for.
  std::unordered_map<std::string, OrderedIndex<Job*>> dependents;
  // Blocked jobs that wait for their turn to hear that what they need has ended.
  Releases releases;
  // All that wait for the job of this id wait from now on for a release, whose number is greater
  // than that of every arrival. REQUIRES: somebody does.
  const Release& begin_release(uint64_t number, const std::string& need, bool completed);
  // The same by a record, in whatever state; `add`: it is under way, else it is over.
  void set_release(uint64_t number, const std::string& need, bool completed, bool add);

  // --- Connections --- the oldest first
  std::vector<LostConnection> lost_connections;

  // --- Workers ---
  Worker* join_worker(Bytes name);
  Worker* find_worker(Bytes name) const;
  // Forgets it if it holds no lease (null: nothing to do).
  void leave_worker(Worker* worker);
  const std::map<std::string, std::unique_ptr<Worker>, std::less<>>& workers() const {
    return workers_;
  }

  // The lines of statistics that a job counts in: the queue's, its band's, its tags'.
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
  // Those that have not ended.
  uint64_t live_jobs() const { return jobs.size() - ended[0].size() - ended[1].size(); }
  uint64_t successors = 0;
  uint64_t waiting() const {
    return count(JobState::kBlocked) + count(JobState::kDelayed) + count(JobState::kPending) +
           successors;
  }

  // --- LIFO tickets --- The ticket that a job owns: its own, or in a LIFO lane the k-th earliest
  // for the k-th newest job; named by the job that it was born with.
  Job* owned_ticket(const Job* job) const;
  // The other way round: the job that owns a pending or delayed ticket.
  static Job* ticket_owner(Job* ticket);
  // What callers see: a pending job whose ticket is not due is delayed.
  JobState shown_state(const Job* job) const;
  // Exchanges the tickets of two jobs of one LIFO lane. Both are unplaced; their states go with the
  // tickets.
  static void exchange_tickets(Job* a, Job* b);

  // --- Order --- Pending jobs before it by (band, rank). REQUIRES: shown_state is pending.
  uint64_t position(const Job* job) const;
  // From where an ETA is told.
  struct EtaView {
    int64_t now_ms = 0;
    size_t waiting_pops = 0;
  };
  // When dispatch would start a job if nothing were added; -1: unknown. REQUIRES: shown_state is
  // pending, and this is its position.
  int64_t eta_ms(const Job* job, uint64_t position, const EtaView& view) const;
  // The same of one that would come, with so many pending ones before it.
  int64_t eta_ms(const ForecastPlace& place, uint64_t position, const EtaView& view) const;
  // By the position alone, as where neither shares nor caps of groups and keys decide.
  int64_t eta_at(uint64_t position, const EtaView& view) const;
  // The slots that count for new admissions; 0: no limit.
  uint64_t max_active() const { return limiter.max_active; }
  // After a change of the configuration: the limits of the queue, then those of groups and keys, as
  // Lanes::reconfigure says; of these for about `steps` at once, the timers go on with the others.
  void reconfigure(const ConfigChange& change, size_t steps, std::vector<Lanes::BoundRate>* bound);
  // The limits of the queue alone.
  void take_own_limits();

  // --- Timers --- The earliest queue time / steady time at which run_queue_timers() has work.
  int64_t next_due_ms() const;
  int64_t next_due_steady() const;
  // More ended jobs of this kind than retention keeps, by number or bytes.
  bool retains_too_much(size_t kind) const;
  // Where the shard keeps it (engine/keyspace/queue_timers.h): the times under which it stands
  // there.
  int64_t listed_due_ms = INT64_MAX;
  int64_t listed_due_steady = INT64_MAX;
  // Its key is gone, and it with the unit that has deleted it (retire_queue()).
  bool retired = false;
  // How late the timers ran last, milliseconds; Q.STATS shows it.
  int64_t timer_lag_ms = 0;
  // Its own name, for timers: the key of its entry, and the database as Database::index() has it.
  std::string key;
  int database = 0;

  // What it takes on the heap: kept, so that it costs no look at any job, lane or rule.
  size_t memory_bytes() const;
  // Verifies the invariants; for tests.
  void check();

 private:
  void count_in(const Job* job, bool in);
  void count_tags(const Job* job, uint64_t one);
  void check_gauges();
  void place_all(const std::function<void()>& pulse);
  // Whether it can be the last job of its band without being in its order (Band::later).
  void place_later(Job* job);
  void unplace_later(Job* job);
  void insert_ttl(Job* job);
  void erase_ttl(Job* job);
  void place_active(Job* job);
  void unplace_active(Job* job);
  void unplace_blocked(Job* job);
  void insert_tied(Job* job);
  void erase_tied(Job* job);
  // Where a blocked job stands that waits for this need.
  OrderedIndex<Job*>& dependents_of(const std::string& need, const Job* job);
  void check_dependents();

  // --- ETA ---
  Capacity capacity(const EtaView& view) const;
  bool has_eligible() const;
  // Made when somebody asks; null: nobody has.
  mutable std::unique_ptr<Forecast> forecast_;

  bool replaying_ = false;
  std::array<uint64_t, kJobStates> counts_{};
  size_t job_bytes_ = 0;  // of all jobs: Job::memory_bytes(), but for the map of ids
  std::map<std::string, std::unique_ptr<Worker>, std::less<>> workers_;
};

}  // namespace sluice
