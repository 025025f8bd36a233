// QueueServer: an engine in this process with several connections, simulated clocks, and a journal
// from which it can be restarted. Replies are RESP3, as trees. Used by one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/commands/complete_engine.h"
#include "engine/execution/execution.h"
#include "engine/execution/follower.h"
#include "engine/ports/journal.h"
#include "engine/queue/queue.h"
#include "tests/support/engine_session.h"
#include "tests/support/memory_journal.h"
#include "tests/support/quiet_server.h"
#include "tests/support/resp_value.h"

namespace sluice::test {

// Everything delivered to a connection besides the replies to its own commands.
class CollectingPort final : public ClientPort {
 public:
  void deliver(ByteBuffer bytes, Lsn) override { messages.emplace_back(bytes.view()); }
  void deliver_blocked_reply(ByteBuffer bytes, Lsn) override {
    blocked_reply = std::string(bytes.view());
  }
  std::vector<std::string> messages;
  std::optional<std::string> blocked_reply;
};

class QueueServer {
 public:
  QueueServer() { begin(0); }

  void connect(size_t connections) {
    for (size_t i = 0; i < connections; ++i) {
      ports_.push_back(std::make_shared<CollectingPort>());
      sessions_.push_back(std::make_unique<EngineSession>(*engine_, *execution_));
      sessions_.back()->client.protocol = 3;
      sessions_.back()->client.port = ports_.back();
    }
  }

  // Wall clock time that the steady clock does not cover counts as a step: queue time is
  // unaffected. (How it follows later is tested with QueueClock.)
  void set_clock(int64_t wall_ms, int64_t steady_ms) {
    const bool first = times_.wall_ms == 0;
    const int64_t queue_ms =
        first ? wall_ms : times_.queue_ms + std::max<int64_t>(0, steady_ms - times_.steady_ms);
    times_ = {wall_ms, queue_ms, steady_ms, queue_ms - wall_ms};
    execution_->set_times(process_times());
  }
  const Times& times() const { return times_; }
  // Advances both clocks and runs everything that becomes due.
  void pass(int64_t ms) {
    set_clock(times_.wall_ms + ms, times_.steady_ms + ms);
    run_timers();
  }
  // Sets the wall clock to another time.
  void step_wall(int64_t ms) { set_clock(times_.wall_ms + ms, times_.steady_ms); }
  int64_t wall_ms() const { return times_.wall_ms; }
  int64_t steady_ms() const { return times_.steady_ms; }
  void run_timers() {
    while (run_some_timers()) {
    }
  }
  // Runs timers for one hold of each shard. Returns whether more are due.
  bool run_some_timers() {
    const bool more = execution_->run_timers(process_times());
    execution_->finish();
    return more;
  }

  // Returns the reply; nothing if the command waits.
  std::optional<RespValue> run(size_t connection, const std::vector<std::string>& words) {
    const std::vector<Bytes> args(words.begin(), words.end());
    const std::string reply = sessions_.at(connection)->run(args);
    if (sessions_[connection]->client.waiter != nullptr) return std::nullopt;
    return resp_value(reply);
  }

  // Replies to commands that waited, by connection.
  std::map<int, RespValue> take_deliveries() {
    std::map<int, RespValue> out;
    for (size_t i = 0; i < ports_.size(); ++i) {
      if (!ports_[i]->blocked_reply.has_value()) continue;
      out[static_cast<int>(i)] = resp_value(*ports_[i]->blocked_reply);
      ports_[i]->blocked_reply.reset();
      engine_->end_waiter(sessions_[i]->client);
    }
    return out;
  }
  // Pushes and published messages, oldest first.
  std::vector<RespValue> take_messages(size_t connection) {
    std::vector<RespValue> out;
    for (const std::string& text : ports_.at(connection)->messages) out.push_back(resp_value(text));
    ports_[connection]->messages.clear();
    return out;
  }
  // Times out the blocked command. Returns false if its reply was already on the way. Commands that
  // are served when their time is over have a reply then.
  bool give_up(size_t connection) {
    const std::shared_ptr<Waiter> waiter = sessions_.at(connection)->client.waiter;
    if (waiter->served_when_late) {
      const bool waits = waiter->is_waiting();
      engine_->departures().leave_late(waiter);
      run_timers();
      return waits;
    }
    return engine_->cancel_waiter(sessions_.at(connection)->client);
  }
  // The connection is lost; a new one takes its number.
  void disconnect(size_t connection) {
    engine_->disconnect(sessions_.at(connection)->client);
    ports_[connection] = std::make_shared<CollectingPort>();
    sessions_[connection] = std::make_unique<EngineSession>(*engine_, *execution_);
    sessions_[connection]->client.protocol = 3;
    sessions_[connection]->client.port = ports_[connection];
  }
  EngineSession& session(size_t connection) { return *sessions_.at(connection); }
  Engine& engine() { return *engine_; }

  // For restarts from a journal that the present commands do not write (MemoryJournal).
  void rewrite_journal(Bytes from, Bytes to) { journal_.rewrite(from, to); }

  // Starts a new process with the old one's journal; the steady clock begins at 0, and queue time
  // at the wall clock's time, but not before its last value.
  void restart(size_t connections) {
    sessions_.clear();
    ports_.clear();
    execution_.reset();
    engine_.reset();
    begin(units());
    restart_clocks();
    connect(connections);
  }
  // The same with a checkpoint instead of the journal before it. `meanwhile` is called after each
  // step of it, with the number of records so far.
  using Meanwhile = std::function<void(uint64_t records)>;
  void restart_from_checkpoint(size_t connections, const Meanwhile& meanwhile = {}) {
    std::unique_ptr<Engine> engine = walked(meanwhile);
    sessions_.clear();
    ports_.clear();
    execution_.reset();
    engine_ = std::move(engine);
    process_ms_ = 0;
    serve();
    restart_clocks();
    connect(connections);
  }

  // A standby: another engine that replays the journal, and follows this one from now on.
  void begin_following() {
    follower_.reset();  // of the standby before
    standby_ = std::make_unique<CompleteEngine>(port_, 7);
    followed_ = units();
    replay(*standby_, followed_);
    follower_ = std::make_unique<Follower>(*standby_);
  }
  // Applies the units since then.
  void follow() {
    while (followed_ < units()) {
      const MemoryJournal::Unit unit = journal_.unit(++followed_);
      const Status status = follower_->apply(followed_, unit.records, unit.count, process_times());
      if (!status.ok()) throw std::runtime_error(status.message());
    }
  }
  Engine& standby() { return *standby_; }
  // This process is lost, and the standby takes over. Its process has begun at another time, but
  // leases count from the takeover, as in restart().
  void take_over(size_t connections) {
    follow();
    follower_->promote(process_times());
    process_ms_ = process_times().steady_ms;
    follower_.reset();
    sessions_.clear();
    ports_.clear();
    execution_.reset();
    engine_ = std::move(standby_);
    serve();
    restart_clocks();
    connect(connections);
  }

  // Null if the queue does not exist (in database 0).
  Queue* find_queue(const std::string& name) { return find_queue(*engine_, name); }
  static Queue* find_queue(Engine& engine, const std::string& name) NO_THREAD_SAFETY_ANALYSIS {
    const KeyRef key(name);
    Entry* entry = engine.shard(key.shard).databases[0].entries.find(key.key, key.hash);
    return entry == nullptr ? nullptr : &entry->object<Queue>();
  }

  Lsn units() const { return journal_.last_lsn(); }
  // Whether moves of large values are journaled as kMoveKey; the last unit with one.
  void take_moves(bool take) { journal_.take_moves(take); }
  Lsn last_move() const { return journal_.last_move_lsn; }

  // The state of these queues and jobs as visible to callers, except what a restart resets.
  std::vector<std::string> describe(const std::vector<std::string>& queues,
                                    const std::vector<std::string>& ids) {
    return describe(*engine_, *execution_, queues, ids);
  }
  // The same for another engine that has replayed the first units of the journal.
  std::vector<std::string> describe_replayed(Lsn units, const std::vector<std::string>& queues,
                                             const std::vector<std::string>& ids) {
    CompleteEngine engine(port_, 7);
    replay(engine, units);
    Execution execution(engine);
    execution.set_times(times_);
    return describe(engine, execution, queues, ids);
  }
  // The same for another engine that was filled from a walk over this one (a checkpoint).
  std::vector<std::string> describe_walked(const std::vector<std::string>& queues,
                                           const std::vector<std::string>& ids) {
    const std::unique_ptr<Engine> engine = walked();
    Execution execution(*engine);
    execution.set_times(times_);
    return describe(*engine, execution, queues, ids);
  }
  // Checks that a prefix of the journal gives a legal state: otherwise CHECKs of the queue abort.
  void check_prefix(Lsn units, const std::vector<std::string>& queues) {
    CompleteEngine engine(port_, 7);
    replay(engine, units);
    for (const std::string& name : queues) {
      if (Queue* queue = find_queue(engine, name)) queue->check();
    }
  }

 private:
  void begin(Lsn units) {
    process_ms_ = 0;
    engine_ = std::make_unique<CompleteEngine>(port_, 7);
    if (units != 0) replay(*engine_, units);
    serve();
  }

  void serve() {
    engine_->attach_journal(&journal_);
    execution_ = std::make_unique<Execution>(*engine_);
  }

  void restart_clocks() {
    const int64_t queue_ms = std::max(times_.wall_ms, times_.queue_ms);
    times_ = {times_.wall_ms, queue_ms, 0, queue_ms - times_.wall_ms};
    execution_->set_times(process_times());
  }
  Times process_times() const {
    Times times = times_;
    times.steady_ms += process_ms_;
    return times;
  }

  // Another engine, filled from a walk over this one and from what was journaled in the meantime.
  std::unique_ptr<Engine> walked(const Meanwhile& meanwhile = {}) {
    auto engine = std::make_unique<CompleteEngine>(port_, 7);
    const Lsn begin = units();
    const std::unique_ptr<CheckpointWalk> walk = engine_->begin_walk();
    const std::unique_ptr<Replay> replay = engine->begin_replay();
    uint64_t total = 0;
    bool more = true;
    while (more) {
      ByteBuffer records;
      uint64_t count = 0;
      more = walk->step(records, count);
      if (!replay->apply(records.view(), count)) throw std::runtime_error("a bad checkpoint");
      total += count;
      if (meanwhile) meanwhile(total);
    }
    apply_units(*replay, begin + 1, units());
    replay->finish();
    return engine;
  }

  void replay(Engine& engine, Lsn units) {
    const std::unique_ptr<Replay> replay = engine.begin_replay();
    apply_units(*replay, 1, units);
    replay->finish();
  }

  void apply_units(Replay& replay, Lsn first, Lsn last) {
    for (Lsn lsn = first; lsn <= last; ++lsn) {
      const MemoryJournal::Unit unit = journal_.unit(lsn);
      if (!replay.apply(unit.records, unit.count)) {
        throw std::runtime_error("unit " + std::to_string(lsn) + " cannot be replayed");
      }
    }
  }

  static std::vector<std::string> describe(Engine& engine, Execution& execution,
                                           const std::vector<std::string>& queues,
                                           const std::vector<std::string>& ids) {
    EngineSession session(engine, execution);
    session.client.protocol = 3;
    std::vector<std::string> out;
    const auto add = [&](const std::vector<std::string>& words,
                         const std::vector<std::string>& without) {
      const std::vector<Bytes> args(words.begin(), words.end());
      RespValue value = resp_value(session.run(args));
      std::string text = words[0] + " " + words[1] + ": ";
      if (value.kind != RespValue::Kind::kMap) {
        out.push_back(text + value.show());
        return;
      }
      for (size_t i = 0; i + 1 < value.items.size(); i += 2) {
        const std::string& name = value.items[i].text;
        if (std::find(without.begin(), without.end(), name) != without.end()) continue;
        text += name + "=" + value.items[i + 1].show() + " ";
      }
      out.push_back(text);
    };
    for (const std::string& queue : queues) {
      add({"Q.CONFIG", queue, "GET"}, {});
      add({"Q.STATS", queue},
          {"waiting_pops", "wait_ms", "run_ms", "oldest_ms", "since", "timer_lag_ms", "rejected",
           "added_per_second", "completed_per_second", "rates", "utilization"});
      for (const std::string& id : ids) {
        add({"Q.GET", queue, id, "WITH", "payload", "WITH", "result"},
            {"deadline", "eta_ms", "why"});  // a renewal is not journaled
        add({"Q.LOG", queue, id}, {});
      }
      add({"Q.EVENTS", queue, "0", "COUNT", "1000"}, {});
    }
    return out;
  }

  QuietServer port_;
  MemoryJournal journal_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Execution> execution_;
  std::vector<std::shared_ptr<CollectingPort>> ports_;
  std::vector<std::unique_ptr<EngineSession>> sessions_;
  Times times_;
  int64_t process_ms_ = 0;  // the steady clock of the process, when leases began
  std::unique_ptr<Engine> standby_;
  std::unique_ptr<Follower> follower_;
  Lsn followed_ = 0;  // the last unit that it has applied
};

}  // namespace sluice::test
