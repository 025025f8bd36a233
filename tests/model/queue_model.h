// QueueModel: the native queue, written as directly as its contract (QUEUE.md): a vector of jobs,
// linear searches, no index, no timer. Slow and obvious.
//
// It receives the same commands as the engine and returns what the engine must reply. What the
// contract leaves to the server (lease tokens, the delay of a retry, ids for `*`, the order of
// events of different jobs in one unit) is read from the engine's replies and checked against its
// limits. Used by one thread.
//
// Expected values: a map names the fields that must be present with these values, others may be
// present too; a text that ends with '*' is a prefix; a single "*" matches anything.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/times.h"
#include "tests/support/resp_value.h"

namespace sluice::test {

using Words = std::vector<std::string>;

// A job's place in line: rank and sequence determine the order, the gate when it may start. In a
// LIFO group jobs and tickets are paired again whenever one is added or removed.
struct ModelTicket {
  int64_t rank = 0;
  uint64_t seq = 0;
  int64_t gate_ms = 0;
  int64_t release_ms = 0;
  int64_t boost_ms = 0;
};

struct ModelOptions {
  std::optional<int64_t> ttl_ms, lease_ms, max_run_ms, retry;
  std::optional<std::pair<int64_t, int64_t>> backoff_ms;
  std::vector<std::pair<std::string, std::string>> tags;
};

struct ModelRun {
  uint64_t token = 0;
  std::string worker;
  std::string request;
  int64_t started_ms = 0;
  int64_t started_steady = 0;
  int64_t term_ms = 0;
  int64_t deadline_steady = 0;
  int64_t run_deadline_steady = INT64_MAX;
  bool cancelled = false;
  std::string reason;
  double charged_ms = 0;
  bool tied = false;
  int connection = 0;  // that it is tied to; -1: a lost one
};

struct ModelAdd {
  std::string id;
  std::string payload;
  std::string mode = "ERROR";
  std::optional<int> band;
  std::optional<int64_t> boost_ms, delay_ms, at_ms;
  std::optional<int64_t> gate_ms;  // of a successor: its DELAY or AT in queue time
  std::optional<std::string> group;
  std::set<std::string> keys;
  std::optional<int64_t> cost;
  std::vector<std::string> needs;
  std::vector<std::string> afters;  // that are no needs
  ModelOptions options;
};

struct ModelJob {
  std::string id;
  std::string payload;
  std::string state;  // blocked, delayed, pending, active, completed, ...
  int band = 2;
  std::string group;
  std::set<std::string> keys;
  int64_t cost = 1;
  ModelTicket ticket;
  uint64_t arrival = 0;
  bool bound = false;
  int64_t enqueued_ms = 0;
  ModelOptions options;
  std::optional<int64_t> ttl_left_ms;
  int64_t ttl_due_ms = 0;  // pending: when it expires; 0: never
  int attempts = 0;
  int crashes = 0;
  int64_t retries_used = 0;
  std::set<std::string> needs;           // that are not met yet
  std::vector<std::string> named_needs;  // all needs that were given
  std::set<std::string> afters;          // whose end it still waits for
  std::vector<std::string> named_afters;
  std::string error;
  std::string progress;
  std::string log;
  int64_t log_gone = 0;  // bytes of the log that are no longer kept
  std::string result;
  std::optional<ModelRun> run;
  std::optional<ModelAdd> successor;
  // Terminal:
  uint64_t finish_order = 0;
  int64_t finished_ms = 0;
  uint64_t last_token = 0;
  uint64_t acknowledged = 0;  // the lease that completed its predecessor

  bool waiting() const { return state == "blocked" || state == "delayed" || state == "pending"; }
  bool active() const { return state == "active"; }
  bool terminal() const { return !waiting() && !active(); }
};

// An error about a job, with its hints.
inline std::string about(const char* code, const ModelJob& job) {
  return std::string(code) + " id=" + job.id + " state=" + job.state;
}

struct ModelPop {
  std::string worker, request;
  size_t count = 1;
  std::optional<int64_t> lease_ms;
  int64_t cap = 0;
  std::optional<std::string> id;
  std::set<std::string> match;
  std::optional<int64_t> block_ms;
  bool tied = false;
  bool brief = false;
  std::set<std::string> with;
  int connection = 0;  // that sent the pop
};

// The place of a candidate in the dispatch order of its queue.
struct ModelPlace {
  int band = 0;
  bool behind_front = false;
  double share_ms = 0;
  int64_t rank = 0;
  uint64_t seq = 0;
  auto operator<=>(const ModelPlace&) const = default;
};

// The environment of a queue.
struct ModelWorld {
  Times now;
  // For a job that the engine has delayed by its own choice (retry after MAXRUN): the time before
  // which it cannot start; 0: now.
  std::function<int64_t(const std::string& queue, const std::string& id)> observed_gate;
  // The engine's events of a queue with greater numbers, as Q.EVENTS replies them.
  std::function<RespValue(const std::string& queue, uint64_t after)> observed_events;
  // Whether a client waits for progress of this job.
  std::function<bool(const std::string& queue, const std::string& id)> is_followed;
};

struct ModelEvent {
  uint64_t seq = 0;
  int64_t time_ms = 0;  // queue time
  std::string type;
  std::string id;
  std::string progress;
  RespValue fields = {};  // as observed
};

// A Q.EVENTS.
struct ModelReading {
  std::string after;  // a number, or `$`
  size_t count = 100;
  bool blocks = false;
  std::set<std::string> types;  // empty: all
  std::set<std::string> ids;    // empty: all

  bool wants(const ModelEvent& event) const {
    return (types.empty() || types.contains(event.type)) && (ids.empty() || ids.contains(event.id));
  }
};

// What ended under an id, for clients that wait for it.
struct ModelEnd {
  std::string id;
  std::string state;  // empty: nothing has ended, but a successor has become the job
  std::string result;
  bool has_successor = false;
};

class QueueModel {
 public:
  QueueModel(std::string name, const ModelWorld& clock) : name_(std::move(name)), clock_(clock) {}

  // --- Commands --- `observed` is the engine's reply.
  RespValue add(const Words& words, const RespValue& observed);
  // The jobs that a pop takes now; null: none. For a pop by id, possibly an error.
  RespValue pop(const ModelPop& spec, const RespValue& observed);
  // Whether this pop was answered with jobs before that are still running.
  bool is_repeat(const ModelPop& spec) const;
  // Whether the last request of its worker was this one.
  bool is_repeated_request(const ModelPop& spec) const;
  RespValue acknowledge(const Words& words);
  RespValue refuse(const Words& words, const RespValue& observed);
  RespValue touch(const Words& words, int connection);
  // Q.NACK ... WHERE WORKER: LOST, SILENT or FAIL.
  RespValue lose_worker(const std::string& worker, const std::string& how);
  bool quiet(const std::string& worker) const {
    return !worker.empty() && rule_value(worker_rules_, worker, "quiet") == "on";
  }
  RespValue cancel(const Words& words);
  RespValue move(const Words& words);
  RespValue retry(const Words& words);
  RespValue purge(const std::string& state);
  RespValue configure(const Words& words);
  RespValue get(const std::string& id);
  RespValue log(const Words& words);
  // The end of a job's log; nothing: there is no such job, or it has ended.
  std::optional<int64_t> open_log(const std::string& id);
  RespValue stats();

  // --- Events ---
  // Compares those that the engine has now with what has happened since the last call.
  void compare_events();
  uint64_t last_event() const { return events_.empty() ? 0 : events_.back().seq; }
  // The number of the first wanted event behind this number; 0: it has none.
  uint64_t first_wanted(const ModelReading& reading, uint64_t after) const;
  // The reply while the log ends with `last`.
  RespValue read_events(const ModelReading& reading, uint64_t after, uint64_t last) const;

  void connection_lost(int connection);
  // Runs all timers that are due.
  void run_timers();
  // The process was restarted: every lease gets its full term again, and requests that got nothing
  // are forgotten.
  void restart();

  // --- For waiters --- Null: nothing for this pop.
  ModelJob* choose(const ModelPop& spec, ModelPlace& place);
  // The error of a waiting pop by id, or null.
  RespValue gone(const ModelPop& spec);
  // Since the last call, in order.
  std::vector<ModelEnd> take_ends() { return std::exchange(ends_, {}); }

  // --- For the test ---
  const std::list<ModelJob>& jobs() const { return jobs_; }
  ModelJob* find(const std::string& id);
  // Slots in use never exceed a cap by an admission. Checked at each admission, reported here.
  const std::string& broken() const { return broken_; }
  // Slot time / weight of a group (fair on).
  double share_ms(const std::string& group) const {
    const auto found = share_ms_.find(group);
    return found == share_ms_.end() ? 0 : found->second;
  }
  double virtual_ms() const { return virtual_ms_; }
  // For people: every job with its place.
  std::string describe() const;
  bool exists = false;
  // When its own next timer is due: (queue time, steady time).
  std::pair<int64_t, int64_t> next_due() const;

 private:
  struct Rule {
    std::string glob;
    std::map<std::string, std::string> fields;
  };
  using Predicate = bool (*)(const ModelJob&);

  // --- queue_model_config.cc ---
  std::string value(const std::string& field) const;
  std::string rule_value(const std::vector<Rule>& rules, const std::string& name,
                         const std::string& field) const;
  int64_t number(const std::string& field) const;
  int64_t group_number(const std::string& group, const std::string& field) const;
  int64_t key_number(const std::string& key, const std::string& field) const;
  bool paused(const std::string& group, const std::string& direction) const;
  bool is_lifo(const ModelJob& job) const;
  double weight(const std::string& group) const;
  int64_t group_ttl(const std::string& group) const;
  // With `priority_order desc` callers' numbers are reversed; in both directions.
  bool descending() const { return value("priority_order") == "desc"; }
  int band_of(int number) const { return descending() ? 255 - number : number; }
  int default_band() const;
  // The queue's cap; changed by `adaptive`.
  int64_t max_active() const { return adaptive_max_ != 0 ? adaptive_max_ : number("max_active"); }
  // PAUSED, QFULL, GROUPFULL; on success a job may have been displaced.
  std::string check_limits(const ModelAdd& spec);
  std::string check_group(const std::string& group) const;
  bool too_large(const ModelAdd& spec) const;
  // Less urgent than the band of `reserve`.
  bool is_reserved_against(int band) const;
  // "1000:300000" -> its numbers; missing ones are 0.
  std::vector<int64_t> numbers(const std::string& field) const;

  // --- queue_model_order.cc ---
  bool due(const ModelTicket& ticket) const { return ticket.gate_ms <= queue_ms_; }
  bool same_stack(const ModelJob& a, const ModelJob& b) const;
  // Exchanges tickets so that each job of the LIFO group holds its own.
  void pair(const ModelJob& member);
  // The time that it may spend pending.
  void start_ttl(ModelJob& job);
  void stop_ttl(ModelJob& job);
  bool same_lane(const ModelJob& a, const ModelJob& b) const;
  bool lane_first(const ModelJob& job) const;
  ModelJob* first_in_order(const std::set<std::string>& match, ModelPlace& place);
  bool limits_allow(const ModelJob& job) const;
  bool rate_allows(const std::string& limit, const std::string& rate) const;
  void take_tokens(const ModelJob& job);
  void give_tokens_back(const ModelJob& job, int64_t began_ms);
  // After a change of a rate, its debt is at most a burst taken now, and zero if there was none.
  void bound_rates();
  std::vector<std::pair<std::string, std::string>> rates_of(const ModelJob& job) const;
  int64_t used(const std::string& group, const std::string& key) const;
  bool fits_queue(const ModelJob& job, const ModelPop& spec) const;
  bool reserved(int band, int64_t cost) const;
  ModelPlace place_of(const ModelJob& job) const;
  std::optional<int64_t> position(const ModelJob& job) const;
  void charge(ModelJob& job);
  void settle_charge(ModelJob& job);
  double received_ms(const std::string& group);
  void forget_shares();
  void backlog_begins(const std::string& group);
  void adapt();

  // --- queue_model.cc ---
  void tick() { queue_ms_ = clock_.now.queue_ms; }
  int64_t count(const std::string& state) const;
  int64_t waiting(const std::string* group) const;
  int64_t active(const std::string* group) const;
  ModelJob* last_below(int band);
  void hold_ttl(ModelAdd& spec) const;
  RespValue set_successor(ModelJob& old, ModelAdd spec);
  RespValue update(ModelJob& old, const ModelAdd& spec);
  RespValue add_new(ModelAdd spec, const char* result);
  void set_options(ModelJob& job, const ModelAdd& spec);
  RespValue told(const char* result, const ModelJob& job) const;
  static void bind(ModelJob& job);
  void begin_waiting(ModelJob& job);
  void admit(ModelJob& job, const ModelPop& spec, uint64_t token);
  void put_need_results(const ModelJob& job, RespValue& out) const;
  RespValue popped(const ModelJob& job, const ModelPop& spec) const;
  RespValue deadline(const ModelJob& job) const;
  // `counts`: whether the run is used to estimate run times.
  void end_run(ModelJob& job, bool counts);
  // The run is over: the job waits again or ends. A successor replaces it in both cases. `event`:
  // retrying, returned or reclaimed.
  void back(ModelJob& job, int64_t gate_ms, bool counts, const char* event);
  void finish(ModelJob& job, const std::string& state, const std::string& error,
              bool counts = true);
  void fail_attempt(ModelJob& job, const std::string& error, int64_t gate_ms);
  // Ends the run as the options of Q.NACK say. `observed_gate_ms`: of a retry without DELAY.
  void give_back(ModelJob& job, const Words& words, int64_t observed_gate_ms);
  // The server chooses the delay of a retry, within limits.
  void check_backoff(const ModelJob& job, int64_t gate_ms);
  bool succeed(ModelJob& job);
  void resolve(const std::string& id, const std::string& state);
  void release_followers(const std::string& id);
  // It waits for no other job any more.
  void release(ModelJob& job);
  std::vector<std::string> waiting_for(const std::string& id, bool after) const;
  void lose_lease(ModelJob& job);
  void forget(const std::string& id);
  void drop_retained();
  std::string check_lease(const std::string& id, const std::string& lease, ModelJob*& job);
  // The worker has spoken.
  void hear(const std::string& worker) { unheard_.erase(worker); }

  // --- queue_model_events.cc ---
  void tell(const std::string& type, const ModelJob& job);
  void tell_progress(const ModelJob& job);
  void report_progress(ModelJob& job, const std::string& progress);
  void continue_progress();
  void compare_event(const RespValue& seen);
  RespValue shown(const ModelEvent& event) const;

  std::string name_;
  const ModelWorld& clock_;
  std::list<ModelJob> jobs_;
  std::map<std::string, std::string> config_;
  std::vector<Rule> group_rules_;
  std::vector<Rule> key_rules_;
  std::vector<Rule> worker_rules_;
  int64_t queue_ms_ = 0;
  uint64_t next_seq_ = 1;
  uint64_t next_finish_ = 1;
  uint64_t last_token_ = 0;
  int64_t next_front_ = 1;
  std::map<std::string, int64_t> arrival_us_;  // GCRA, by "q", "g:name", "k:name"
  // When the first and the last token of this rate were taken, since the start.
  struct Taken {
    std::string rate;
    int64_t first_ms;
    int64_t last_ms;
  };
  std::map<std::string, Taken> taken_;
  std::map<std::string, double> share_ms_;  // fair: by group
  double virtual_ms_ = 0;                   // of the queue
  std::vector<int64_t> runs_ms_;
  int64_t completions_ = 0;   // since the last adaptation
  int64_t adaptive_max_ = 0;  // 0: `adaptive off`
  std::map<std::string, int64_t> totals_;
  std::map<std::string, std::string> worker_tokens_;  // the last REQID of each
  // The last that got jobs, of the workers that hold some.
  std::map<std::string, std::string> admitted_tokens_;
  std::set<std::string> unheard_;  // that hold jobs, and have not spoken since the start
  std::vector<ModelEnd> ends_;
  std::deque<ModelEvent> events_;  // the last ones
  std::vector<ModelEvent> told_;   // that the engine must have since the last comparison
  // Jobs with a `progress` event in the last second: when that is over, and whether another event
  // is owed then.
  struct Pace {
    int64_t due_ms;
    bool owed;
  };
  std::map<std::string, Pace> pace_;
  std::string broken_;
};

// Several queues, and their waiting clients.
class ModelServer {
 public:
  ModelServer();
  ModelServer(const ModelServer&) = delete;
  ModelServer& operator=(const ModelServer&) = delete;

  ModelWorld clock;

  // The reply that the engine must give to a command of this connection. If the command blocks,
  // `blocked` is true instead. `deliveries` are the engine's replies to waiting clients.
  struct Expected {
    RespValue reply;
    bool blocked = false;
    std::map<int, RespValue> served;
  };
  Expected run(int connection, const Words& words, const RespValue& observed,
               const std::map<int, RespValue>& deliveries);
  Expected run_timers(const std::map<int, RespValue>& deliveries);
  // A command that shows a job when its time is over replies, the others do not.
  std::optional<RespValue> stop_waiting(int connection);
  // The connection is lost; a new one takes its number.
  void disconnect(int connection);
  bool waits(int connection) const;
  void restart();
  QueueModel& queue(const std::string& name);
  std::map<std::string, QueueModel>& queues() { return queues_; }
  uint64_t waiting_pops() const { return waiters_.size(); }

 private:
  struct Waiter {
    int connection = 0;
    std::vector<std::string> queues;
    ModelPop spec;
    std::optional<RespValue> answers;  // of Q.ACK ... AND

    RespValue answered(const RespValue& value) const;
  };
  // A Q.ADD ... WAIT.
  struct Await {
    int connection = 0;
    std::string queue;
    std::string id;
    RespValue added;
    bool for_successor = false;
  };
  // A Q.LOG ... BLOCK.
  struct LogReader {
    int connection = 0;
    Words words;
  };
  // A Q.EVENTS ... BLOCK.
  struct Follower {
    int connection = 0;
    std::string queue;
    ModelReading reading;
    uint64_t after = 0;
  };
  RespValue execute(const Words& words, const RespValue& observed, int connection,
                    Expected& expected);
  static RespValue add(QueueModel& queue, const Words& words, const RespValue& observed);
  RespValue add_awaited(const Words& words, const RespValue& observed, int connection,
                        bool& blocked);
  void tell_ends(Expected& expected);
  RespValue end_runs(const Words& words, const RespValue& observed, int connection,
                     Expected& expected);
  // A waiting pop of the same request ends. Returns whether there was one.
  bool drop_older(const Waiter& newer, Expected& expected);
  RespValue pop(const Waiter& waiter, const RespValue& observed, bool& blocked);
  void serve(const std::map<int, RespValue>& deliveries, Expected& expected);
  bool serve_one(const std::map<int, RespValue>& deliveries, Expected& expected);

  // --- queue_model_events.cc ---
  RespValue read_log(const Words& words, int connection, bool& blocked);
  RespValue read_events(const Words& words, int connection, bool& blocked);
  // The end of a job is the end of its log.
  void end_log(const std::string& queue, const std::string& id, Expected& expected);
  // Those who read a log or events that have grown. After everything else.
  void serve_readers(const std::map<int, RespValue>& deliveries, Expected& expected);

  std::map<std::string, QueueModel> queues_;
  std::list<Waiter> waiters_;
  std::list<Await> awaits_;
  std::list<LogReader> log_readers_;
  std::list<Follower> followers_;
  std::optional<Await> begun_;  // by the present command
};

ModelPop parse_model_pop(const Words& words, size_t from);
ModelAdd parse_model_add(const Words& words);
ModelReading parse_model_reading(const Words& words);

}  // namespace sluice::test
