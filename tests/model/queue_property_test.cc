// The native queue against a naive model: random histories of commands, clocks, waiting pops and
// restarts. Every reply is compared, and the contract's invariants are checked throughout. Where
// there are restarts, a standby follows: its state is compared, and at times it takes over.
//
// SLUICE_OPERATIONS=n sets the length of each history, SLUICE_SEED=n runs one of them.
#include <cmath>
#include <cstdlib>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "engine/execution/engine.h"
#include "engine/execution/execution.h"
#include "engine/queue/queue.h"
#include "tests/model/queue_history.h"
#include "tests/model/queue_model.h"
#include "tests/support/queue_dump.h"
#include "tests/support/queue_server.h"
#include "tests/support/seeds.h"
#include "tests/support/test.h"

namespace sluice::test {

namespace {

constexpr int kConnections = 6;
constexpr int kObserver = kConnections;  // an additional connection, which never waits
constexpr size_t kToldOperations = 25;

// Whether `seen` matches `expected` (see queue_model.h).
bool fits(const RespValue& expected, const RespValue& seen) {
  using Kind = RespValue::Kind;
  if (expected.kind == Kind::kText && expected.text == "*") return true;
  if (expected.kind == Kind::kMap) {
    if (seen.kind != Kind::kMap) return false;
    for (size_t i = 0; i + 1 < expected.items.size(); i += 2) {
      const RespValue* value = seen.find(expected.items[i].text);
      if (value == nullptr || !fits(expected.items[i + 1], *value)) return false;
    }
    return true;
  }
  if (expected.kind != seen.kind) return false;
  if (expected.kind == Kind::kArray) {
    if (expected.items.size() != seen.items.size()) return false;
    for (size_t i = 0; i < seen.items.size(); ++i) {
      if (!fits(expected.items[i], seen.items[i])) return false;
    }
    return true;
  }
  if (expected.is_error() && !expected.text.empty() && expected.text.back() == '*') {
    return seen.text.rfind(expected.text.substr(0, expected.text.size() - 1), 0) == 0;
  }
  return expected.text == seen.text;
}

std::string line(const Words& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

// One history: an engine, a model, and the commands so far.
class History {
 public:
  History(uint64_t seed, const HistoryStyle& style)
      : random_(seed), generator_(random_, style, model_), style_(style) {
    set_clock(1'700'000'000'000, 0);
    server_.connect(kConnections + 1);
    model_.clock.observed_gate = [&](const std::string& queue, const std::string& id) {
      const auto job = server_.run(size_t{kObserver}, {"Q.GET", queue, id});
      if (!job.has_value() || job->number("not_before") == 0) return int64_t{0};
      return job->number("not_before") + server_.times().ahead_ms;
    };
    model_.clock.observed_events = [&](const std::string& queue, uint64_t after) {
      return server_
          .run(size_t{kObserver}, {"Q.EVENTS", queue, std::to_string(after), "COUNT", "1000"})
          .value();
    };
  }

  void run(size_t operations) {
    for (const Words& words : generator_.beginning()) execute(0, words);
    if (style_.restarts) server_.begin_following();
    for (size_t i = 0; i < operations && failure_.empty(); ++i) {
      step();
      if (style_.restarts && i % 40 == 0) check_standby();
      if (i % 20 == 0) check_gauges();
      if (i % 30 == 0) look_ahead();
      if (i % 100 == 0) check_jobs();
    }
    if (!failure_.empty()) return;
    check_jobs();
    check_events();
    check_replay();
  }

  const std::string& failure() const { return failure_; }

 private:
  size_t pick(size_t count) { return random_() % count; }

  void set_clock(int64_t wall_ms, int64_t steady_ms) {
    server_.set_clock(wall_ms, steady_ms);
    model_.clock.now = server_.times();
  }

  void fail(const std::string& what) {
    if (!failure_.empty()) return;
    failure_ = what + "\n";
    for (const std::string& done : done_) failure_ += "  " + done + "\n";
    for (auto& [name, queue] : model_.queues()) {
      failure_ += queue.describe();
      if (Queue* found = server_.find_queue(name)) failure_ += describe(*found, name);
    }
  }

  static std::string describe(const Queue& queue, const std::string& name) {
    std::string out;
    queue.jobs.for_each([&](const Job* job) {
      const JobState state = queue.shown_state(job);
      const bool pending = state == JobState::kPending;
      out += "    engine " + name + "/" + std::string(job->id()) + " " +
             std::string(job_state_name(state)) + " band " + std::to_string(job->band) +
             " group '" + job->lane->group->name + "' position " +
             (pending ? std::to_string(queue.position(job)) : "-") + " rank " +
             std::to_string(job->rank) + " seq " + std::to_string(job->seq) + " arrival " +
             std::to_string(job->arrival()) + (job->lane->lifo ? "" : " bound") + " share " +
             std::to_string(job->lane->group->virtual_ms) + "\n";
    });
    return out;
  }

  void note(const std::string& text) {
    done_.push_back(text);
    if (done_.size() > kToldOperations) done_.pop_front();
  }

  void step() {
    if (pick(4) == 0) pass_time();
    if (style_.restarts && pick(700) == 0) return pick(2) == 0 ? restart() : take_over();
    if (style_.ties && pick(40) == 0) {
      const size_t lost = pick(kConnections);
      note("connection " + std::to_string(lost) + " is lost");
      server_.disconnect(lost);
      return model_.disconnect(static_cast<int>(lost));
    }
    std::vector<int> idle;
    for (int i = 0; i < kConnections; ++i) {
      if (!model_.waits(i)) idle.push_back(i);
    }
    if (idle.empty() || pick(60) == 0) {
      const int tired = static_cast<int>(pick(kConnections));
      if (!model_.waits(tired)) return;
      note("connection " + std::to_string(tired) + " gives up");
      server_.give_up(static_cast<size_t>(tired));
      const std::map<int, RespValue> deliveries = server_.take_deliveries();
      ModelServer::Expected expected;
      if (const auto reply = model_.stop_waiting(tired)) {
        // The timers have served it, and have done what else is due.
        expected = model_.run_timers(deliveries);
        expected.served[tired] = *reply;
      }
      return compare_served(expected, deliveries);
    }
    execute(idle[pick(idle.size())], generator_.command());
  }

  void execute(int connection, const Words& words) {
    const std::optional<RespValue> reply = server_.run(static_cast<size_t>(connection), words);
    const std::map<int, RespValue> deliveries = server_.take_deliveries();
    note(std::to_string(model_.clock.now.wall_ms % 10'000'000) + " [" + std::to_string(connection) +
         "] " + line(words) + " -> " + (reply.has_value() ? reply->show() : "waits"));
    for (const auto& [to, value] : deliveries) {
      note("  [" + std::to_string(to) + "] hears " + value.show());
    }
    const ModelServer::Expected expected =
        model_.run(connection, words, reply.value_or(RespValue()), deliveries);
    if (expected.blocked && expected.served.contains(connection)) {
      // The model serves a pop that began to wait in the same unit; the engine replies at once.
      return fail("the model's waiter is served at once");
    }
    if (expected.blocked == reply.has_value()) {
      return fail(expected.blocked ? "expected it to wait" : "expected " + expected.reply.show());
    }
    if (reply.has_value() && !fits(expected.reply, *reply)) {
      return fail("expected " + expected.reply.show());
    }
    compare_served(expected, deliveries);
  }

  void compare_served(const ModelServer::Expected& expected,
                      const std::map<int, RespValue>& deliveries) {
    for (const auto& [connection, value] : expected.served) {
      const auto found = deliveries.find(connection);
      if (found == deliveries.end() || !fits(value, found->second)) {
        return fail("expected [" + std::to_string(connection) + "] to hear " + value.show());
      }
    }
    if (expected.served.size() != deliveries.size()) return fail("somebody hears too much");
    for (auto& [name, queue] : model_.queues()) {
      if (!queue.broken().empty()) return fail(name + ": " + queue.broken());
    }
    if (style_.fair) check_shares();
  }

  // Invariant 7 depends on these.
  void check_shares() {
    for (auto& [name, queue] : model_.queues()) {
      Queue* found = server_.find_queue(name);
      if (found == nullptr) continue;
      if (std::abs(found->lanes.virtual_ms() - queue.virtual_ms()) >= 0.01) {
        fail("the virtual time is " + std::to_string(found->lanes.virtual_ms()) + ", expected " +
             std::to_string(queue.virtual_ms()));
      }
      found->lanes.groups().for_each([&](const Group* group) {
        const double expected = queue.share_ms(group->name);
        if (std::abs(group->virtual_ms - expected) < 0.01) return;
        fail("the share of '" + group->name + "' is " + std::to_string(group->virtual_ms) +
             ", expected " + std::to_string(expected));
      });
    }
  }

  // Advances time, from one event that is due to the next.
  void pass_time() {
    static constexpr int64_t kSteps[] = {0, 1, 3, 20, 150, 1000, 7000};
    const int64_t passes = kSteps[pick(style_.long_steps ? 7 : 5)];
    int64_t left = passes;
    if (style_.wall_steps && pick(100) == 0) {
      static constexpr int64_t kSpans[] = {20, 3000, 3'600'000, 31'536'000'000};
      const auto span = static_cast<size_t>(kSpans[pick(4)]);
      const int64_t step_ms = static_cast<int64_t>(pick(2 * span)) - static_cast<int64_t>(span);
      note("the wall clock is set by " + std::to_string(step_ms) + " ms");
      set_clock(model_.clock.now.wall_ms + step_ms, model_.clock.now.steady_ms);
    }
    while (failure_.empty()) {
      int64_t next = left;
      for (auto& [name, queue] : model_.queues()) {
        const auto [due_ms, due_steady] = queue.next_due();
        if (due_ms != INT64_MAX) next = std::min(next, due_ms - model_.clock.now.queue_ms);
        if (due_steady != INT64_MAX) next = std::min(next, due_steady - model_.clock.now.steady_ms);
      }
      next = std::max<int64_t>(next, left == 0 ? 0 : 1);
      left = std::max<int64_t>(0, left - next);
      set_clock(model_.clock.now.wall_ms + next, model_.clock.now.steady_ms + next);
      run_timers();
      if (left == 0) return;
    }
  }

  void run_timers() {
    server_.run_timers();
    const std::map<int, RespValue> deliveries = server_.take_deliveries();
    for (const auto& [to, value] : deliveries) {
      note(std::to_string(model_.clock.now.wall_ms % 10'000'000) + " timers: [" +
           std::to_string(to) + "] hears " + value.show());
    }
    compare_served(model_.run_timers(deliveries), deliveries);
  }

  void restart() {
    note("restart");
    server_.restart(kConnections + 1);
    resume();
  }

  // Shares and adaptive caps depend on the run times of this process, which a restart forgets. A
  // standby has counted them from the records, but not all exactly as the model does.
  void take_over() {
    if (style_.fair || style_.adapts) return restart();
    note("the standby takes over");
    server_.take_over(kConnections + 1);
    resume();
  }

  void resume() {
    model_.clock.now = server_.times();
    model_.restart();
    run_timers();
    check_jobs();
    server_.begin_following();
  }

  // The standby has the same state, with every index in order.
  void check_standby() {
    server_.follow();
    const int64_t now_ms = server_.times().queue_ms;
    for (auto& [name, queue] : model_.queues()) {
      const Queue* live = server_.find_queue(name);
      Queue* other = QueueServer::find_queue(server_.standby(), name);
      if ((live == nullptr) != (other == nullptr)) return fail("the standby lacks a queue");
      if (live == nullptr) continue;
      other->check();
      const auto expected = dump_queue(*live, now_ms);
      const auto seen = dump_queue(*other, now_ms);
      if (expected != seen) return fail("the standby differs:" + dump_difference(expected, seen));
    }
  }

  // Looking ahead must not change anything; whether the result is right is tested in
  // tests/unit/work/queue_dispatch_test.cc.
  void look_ahead() {
    for (auto& [name, queue] : model_.queues()) {
      server_.run(size_t{kObserver}, {"Q.LIST", name, "BY", "DISPATCH"});
      if (Queue* found = server_.find_queue(name)) found->check();
    }
  }

  // Invariants 2, 9: each gauge and total equals a recount.
  void check_gauges() {
    for (auto& [name, queue] : model_.queues()) {
      Queue* found = server_.find_queue(name);
      if (found == nullptr) continue;
      found->check();
      execute(kObserver, {"Q.STATS", name});
    }
  }

  void check_jobs() {
    for (auto& [name, queue] : model_.queues()) {
      std::vector<std::string> ids = generator_.ids();
      for (const ModelJob& job : queue.jobs()) ids.push_back(job.id);
      for (const std::string& id : ids) {
        if (!failure_.empty()) return;
        execute(kObserver, {"Q.GET", name, id, "WITH", "payload", "WITH", "options"});
        execute(kObserver, {"Q.LOG", name, id, "FROM", "0", "COUNT", "1000"});
      }
    }
  }

  // Invariant 11: numbers without gaps, times that never go back.
  void check_events() {
    for (auto& [name, queue] : model_.queues()) {
      uint64_t after = 0;
      int64_t time_ms = 0;
      for (;;) {
        // A restart with the wall clock far ahead leaves none of the older events.
        const std::string from = after == 0 ? "-" : std::to_string(after);
        const auto reply =
            server_.run(size_t{kObserver}, {"Q.EVENTS", name, from, "COUNT", "1000"});
        if (!reply.has_value() || reply->is_error()) return fail("Q.EVENTS fails");
        if (reply->items.empty()) break;
        for (const RespValue& event : reply->items) {
          const auto seq = static_cast<uint64_t>(std::atoll(event.items.at(0).text.c_str()));
          const int64_t at_ms = std::atoll(event.items.at(1).text.c_str());
          if (after != 0 && seq != after + 1) return fail("a gap before " + event.show());
          if (at_ms < time_ms) return fail("time goes back at " + event.show());
          after = seq;
          time_ms = at_ms;
        }
      }
      Queue* found = server_.find_queue(name);
      if (found == nullptr || found->events.empty()) continue;
      if (after != found->events.last_seq()) return fail("events are missing");
    }
  }

  // Invariants 9 and 10: the journal, and each prefix of it, gives the same state.
  void check_replay() {
    std::vector<std::string> names;
    for (auto& [name, queue] : model_.queues()) names.push_back(name);
    const std::vector<std::string> live = server_.describe(names, generator_.ids());
    const std::vector<std::string> replayed =
        server_.describe_replayed(server_.units(), names, generator_.ids());
    for (size_t i = 0; i < live.size(); ++i) {
      if (live[i] != replayed.at(i)) {
        return fail("replay differs\n  live:     " + live[i] + "\n  replayed: " + replayed[i]);
      }
    }
    const std::vector<std::string> walked = server_.describe_walked(names, generator_.ids());
    for (size_t i = 0; i < live.size(); ++i) {
      if (live[i] != walked.at(i)) {
        return fail("a checkpoint differs\n  live:   " + live[i] + "\n  walked: " + walked[i]);
      }
    }
    for (int i = 0; i < 12; ++i) server_.check_prefix(pick(server_.units() + 1), names);
  }

  std::mt19937_64 random_;
  ModelServer model_;
  HistoryGenerator generator_;
  const HistoryStyle style_;
  QueueServer server_;
  std::deque<std::string> done_;
  std::string failure_;
};

void run_histories(const HistoryStyle& style, uint64_t count, uint64_t factor) {
  const char* text = std::getenv("SLUICE_OPERATIONS");
  const size_t operations = text != nullptr ? std::strtoull(text, nullptr, 10) : 10'000;
  for (const uint64_t seed : testing::seeds(count, factor)) {
    testing::use_seed(seed);
    INFO("SLUICE_SEED=", seed);
    History history(seed, style);
    history.run(operations);
    if (!history.failure().empty()) FAIL(history.failure());
  }
}

}  // namespace

TEST_CASE("histories of bands, groups, keys, caps, leases and retries") {
  run_histories({}, 3, 11);
}

TEST_CASE("histories with needs") {
  HistoryStyle style;
  style.needs = true;
  style.waiters = true;
  style.restarts = true;
  run_histories(style, 3, 41);
}

TEST_CASE("histories with pops that wait") {
  HistoryStyle style;
  style.waiters = true;
  run_histories(style, 3, 13);
}

TEST_CASE("histories with a wall clock that is set, back and ahead") {
  HistoryStyle style;
  style.wall_steps = true;
  style.waiters = true;
  run_histories(style, 2, 43);
  style.rates = true;
  style.restarts = true;
  run_histories(style, 2, 101);
  style.fair = true;
  style.adapts = true;
  run_histories(style, 1, 103);
}

TEST_CASE("histories with jobs of several slots") {
  HistoryStyle style;
  style.costs = true;
  run_histories(style, 2, 17);
}

TEST_CASE("histories with jobs of several slots, reserved slots and pops by ID") {
  HistoryStyle style;
  style.costs = true;
  style.reserves = true;
  style.waiters = true;
  style.named = true;
  style.long_steps = false;
  run_histories(style, 2, 83);
  style.adapts = true;
  run_histories(style, 1, 89);
  // No waiting: jobs that have aged are only noticed by a pop.
  style.waiters = false;
  style.aging = true;
  run_histories(style, 2, 97);
}

TEST_CASE("histories with restarts") {
  HistoryStyle style;
  style.restarts = true;
  style.waiters = true;
  run_histories(style, 3, 19);
}

TEST_CASE("histories with rates") {
  HistoryStyle style;
  style.rates = true;
  run_histories(style, 2, 23);
}

TEST_CASE("histories with aging") {
  HistoryStyle style;
  style.aging = true;
  run_histories(style, 2, 29);
}

TEST_CASE("histories with LIFO groups") {
  HistoryStyle style;
  style.lifo = true;
  run_histories(style, 2, 31);
}

TEST_CASE("histories with fair shares") {
  HistoryStyle style;
  style.fair = true;
  run_histories(style, 2, 37);
}

TEST_CASE("histories with retention by bytes") {
  HistoryStyle style;
  style.bytes = true;
  style.restarts = true;
  run_histories(style, 2, 47);
}

TEST_CASE("histories with displaced jobs") {
  HistoryStyle style;
  style.displaces = true;
  run_histories(style, 2, 53);
  style.needs = true;
  run_histories(style, 1, 59);
  style.needs = false;
  style.lifo = true;
  run_histories(style, 1, 61);
}

TEST_CASE("histories with reserved slots") {
  HistoryStyle style;
  style.reserves = true;
  style.waiters = true;
  run_histories(style, 2, 67);
}

TEST_CASE("histories with an adaptive cap") {
  HistoryStyle style;
  style.adapts = true;
  style.reserves = true;
  style.restarts = true;
  style.waiters = true;
  run_histories(style, 2, 71);
}

TEST_CASE("histories with larger numbers more urgent") {
  HistoryStyle style;
  style.descending = true;
  style.lifo = true;
  style.aging = true;
  style.reserves = true;
  run_histories(style, 2, 73);
}

TEST_CASE("histories with workers that are quiet, and that are lost") {
  HistoryStyle style;
  style.quiets = true;
  style.waiters = true;
  style.restarts = true;
  run_histories(style, 3, 107);
}

TEST_CASE("histories with clients that follow jobs, and read logs as they grow") {
  HistoryStyle style;
  style.follows = true;
  run_histories(style, 2, 109);
  style.waiters = true;
  style.restarts = true;
  run_histories(style, 3, 113);
  style.needs = true;
  style.ties = true;
  run_histories(style, 1, 127);
}

TEST_CASE("histories with tied leases and lost connections") {
  HistoryStyle style;
  style.ties = true;
  style.waiters = true;
  style.restarts = true;
  run_histories(style, 2, 79);
}

}  // namespace sluice::test
