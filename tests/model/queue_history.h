// Random commands for the native queue. Pools of ids, groups and keys are small, so that cases
// coincide.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "tests/model/queue_model.h"

namespace sluice::test {

// The features of a history, besides what all histories have.
struct HistoryStyle {
  bool needs = false;
  bool waiters = false;
  bool costs = false;
  bool restarts = false;
  bool rates = false;
  bool aging = false;
  bool lifo = false;
  bool fair = false;
  bool bytes = false;       // retention by bytes
  bool displaces = false;   // `full displace`
  bool reserves = false;    // `reserve`
  bool adapts = false;      // `adaptive`
  bool descending = false;  // `priority_order desc`
  bool ties = false;        // TIED leases, and lost connections
  bool wall_steps = false;  // the wall clock goes back at times
  bool named = false;       // many pops by ID
  bool quiets = false;      // workers that become quiet, and that are lost with all their leases
  bool follows = false;     // clients that read events and logs, and wait for more
  bool long_steps = true;   // steps of the clocks that reach retention
};

class HistoryGenerator {
 public:
  HistoryGenerator(std::mt19937_64& random, const HistoryStyle& style, ModelServer& model)
      : random_(random), style_(style), model_(model) {}

  // Configuration, before everything else.
  std::vector<Words> beginning() {
    std::vector<Words> out;
    for (const char* name : {"one", "two"}) {
      out.push_back({"Q.CONFIG", name, "SET", "retry", "1", "backoff", "40:300", "lease_ms", "500",
                     "crash_limit", "2", "retain_completed", "4:3000", "retain_failed", "3:5000",
                     "log_bytes", "20", "worker_ttl_ms", "100000000000"});
      if (style_.fair) out.push_back({"Q.CONFIG", name, "SET", "fair", "on"});
      if (style_.lifo) out.push_back({"Q.CONFIG", name, "SET", "order", "lifo:2"});
      if (style_.aging) out.push_back({"Q.CONFIG", name, "SET", "aging_ms", "200"});
      const auto set = [&](const char* field, const char* value) {
        out.push_back({"Q.CONFIG", name, "SET", field, value});
      };
      if (style_.descending) set("priority_order", "desc");
      if (style_.bytes) set("retain_completed", "6:3000:48");
      if (style_.displaces)
        out.push_back({"Q.CONFIG", name, "SET", "full", "displace", "max_waiting", "5"});
      if (style_.reserves) set("reserve", "1:2");
      if (style_.reserves) set("max_active", "4");
      if (style_.adapts) set("adaptive", "2:5:30:90:1");
      if (style_.ties) set("disconnect_grace_ms", "100");
      if (style_.ties) set("max_run_ms", "900");
      if (style_.fair) {
        out.push_back({"Q.CONFIG", name, "GROUP", "g.2", "SET", "weight", "2.0"});
      }
    }
    return out;
  }

  Words command() {
    if (style_.follows && chance(25)) return chance(60) ? follow() : touch();
    const size_t kind = pick(100);
    if (kind < 30) return add();
    if (kind < 52) return pop();
    if (kind < 64) return acknowledge();
    if (kind < 71) return refuse();
    if (kind < 76) return touch();
    if (kind < 81) return cancel();
    if (kind < 89) return move();
    if (kind < 92) return {"Q.RETRY", queue(), id()};
    if (kind < 93) return {"Q.PURGE", queue(), "WHERE", "STATE", one_of({"completed", "failed"})};
    if (kind < 97) return configure();
    if (kind < 98) return read_log(false);
    return {"Q.GET", queue(), id(), "WITH", "payload", "WITH", "options"};
  }

  std::vector<std::string> ids() const {
    std::vector<std::string> out;
    for (int i = 0; i < kIds; ++i) out.push_back("j" + std::to_string(i));
    return out;
  }

 private:
  static constexpr int kIds = 14;

  size_t pick(size_t count) { return random_() % count; }
  bool chance(size_t percent) { return pick(100) < percent; }
  std::string one_of(const std::vector<std::string>& all) { return all[pick(all.size())]; }
  std::string number(size_t least, size_t most) {
    return std::to_string(least + pick(most - least + 1));
  }
  // lease() refers to the last queue that was drawn, so a command must draw its queue first.
  std::string queue() { return drawn_queue_ = chance(80) ? "one" : "two"; }
  std::string id() { return drawn_id_ = "j" + std::to_string(pick(kIds)); }
  std::string group() { return one_of({"g.1", "g.2", "g.3"}); }
  // Some that many jobs name, others that mostly have one job at a time.
  std::string key() { return chance(60) ? one_of({"k.a", "k.b", "k.c"}) : "k." + number(0, 12); }
  std::string band() { return number(0, 4); }

  // Mostly the present lease of the job, sometimes an invalid one.
  std::string lease() {
    const ModelJob* job = model_.queue(drawn_queue_).find(drawn_id_);
    if (job == nullptr || chance(5)) return number(1, 1000);
    if (job->run.has_value()) return std::to_string(job->run->token);
    return std::to_string(job->last_token == 0 ? 1 : job->last_token);
  }

  // An id that is active, if there is one.
  std::string active_id() {
    std::vector<std::string> ids;
    for (const ModelJob& job : model_.queue(drawn_queue_).jobs()) {
      if (job.active()) ids.push_back(job.id);
    }
    return drawn_id_ = ids.empty() || chance(10) ? id() : ids[pick(ids.size())];
  }

  Words add() {
    const std::string name = queue();
    const std::string job = chance(5) ? "*" : id();
    Words words{"Q.ADD", name, job, "p" + number(0, 999)};
    const auto more = [&](std::initializer_list<std::string> all) {
      words.insert(words.end(), all);
    };
    const ModelJob* old = model_.queue(name).find(job);
    const bool exists = old != nullptr;
    const bool active = exists && old->active();
    bool replaces = false;
    if (chance(60)) {
      const std::string mode = one_of({"KEEP", "UPDATE", "UPDATE", "REPLACE", "ERROR"});
      more({"IFDUP", mode});
      replaces = mode == "REPLACE";
    }
    if (chance(40)) more({"PRI", band()});
    if (chance(10)) more({"TTL", number(50, 2000)});
    if (chance(10)) more({"LEASE", number(100, 2000)});
    if (chance(10)) more({"MAXRUN", number(100, 900)});
    if (chance(20)) more({"RETRY", number(0, 3)});
    if (chance(10)) more({"BRIEF"});
    if (chance(10)) more({"BACKOFF", "10", "100"});
    if (style_.bytes && chance(20)) more({"TAG", "t", "v" + number(0, 999)});
    if (exists && !replaces) return awaited(std::move(words));
    // Fields that an update must not change.
    if (chance(60)) more({"GROUP", group()});
    if (chance(30)) more({"KEY", key()});
    if (chance(15)) more({"KEY", key()});
    if (chance(15)) more({"DELAY", number(0, 400)});
    if (chance(10)) more({"BOOST", one_of({"-50", "-5", "5", "50", "500"})});
    if (style_.costs && chance(30)) more({"COST", chance(80) ? "2" : "3"});
    if (style_.needs && !active && chance(15)) more({"NEED", "j" + std::to_string(pick(kIds))});
    while (style_.needs && !active && chance(15)) more({"AFTER", "j" + std::to_string(pick(kIds))});
    return awaited(std::move(words));
  }

  // The model must know the id before the reply.
  Words awaited(Words add) {
    const bool brief = std::find(add.begin(), add.end(), "BRIEF") != add.end();
    if (!style_.waiters || add[2] == "*" || brief || !chance(12)) return add;
    add.insert(add.end(), {"WAIT", "0"});
    return add;
  }

  Words pop_options() {
    Words words;
    const auto more = [&](std::initializer_list<std::string> all) {
      words.insert(words.end(), all);
    };
    if (chance(50)) more({"WORKER", one_of({"w1", "w2", "w3"})});
    if (chance(20)) more({"COUNT", number(1, 4)});
    if (chance(15)) more({"LEASE", number(100, 1500)});
    if (chance(10)) more({"CAP", number(2, 6)});
    if (style_.ties && chance(50)) more({"TIED"});
    if (chance(15)) more({"MATCH", key()});
    if (chance(20)) more({"BRIEF"});
    if (chance(20)) more({"WITH", one_of({"error", "progress", "group", "tags"}), "WITH", "error"});
    if (style_.needs && chance(30)) more({"WITH", "need_results"});
    if (style_.waiters && chance(50)) more({"BLOCK", "0"});
    return words;
  }

  // The options of a pop that may be repeated.
  Words request() {
    Words words{"WORKER", one_of({"w1", "w2"}), "REQID", "r" + number(1, 3)};
    if (chance(30)) words.push_back("BRIEF");
    if (style_.waiters && chance(40)) words.insert(words.end(), {"BLOCK", "0"});
    return words;
  }

  Words pop() {
    Words words{"Q.POP", "1", queue()};
    if (style_.named ? chance(50) : style_.waiters && chance(10)) {
      words.insert(words.end(), {"ID", id()});
      if (style_.waiters && chance(60)) words.insert(words.end(), {"BLOCK", "0"});
      return words;
    }
    if (chance(10)) words = {"Q.POP", "2", "one", "two"};
    const Words options = chance(10) ? request() : pop_options();
    words.insert(words.end(), options.begin(), options.end());
    return words;
  }

  // Ids and leases with their options: of one job, or of several with AND.
  template <class Options>
  void add_pairs(Words& words, Options add_options) {
    const size_t count = chance(20) ? 2 + pick(3) : 1;
    for (size_t i = 0; i < count; ++i) {
      if (i != 0) words.push_back("AND");
      words.push_back(active_id());
      words.push_back(lease());
      add_options();
    }
  }

  Words acknowledge() {
    if (!request_.empty() && chance(20)) return request_;
    Words words{"Q.ACK", queue()};
    add_pairs(words, [&] {
      if (chance(20)) words.insert(words.end(), {"RESULT", "r" + number(0, 99)});
    });
    if (chance(15)) {
      words.push_back("POP");
      const bool repeatable = chance(40);
      const Words options = repeatable ? request() : pop_options();
      words.insert(words.end(), options.begin(), options.end());
      if (repeatable) request_ = words;
    }
    return words;
  }

  Words refuse() {
    if (style_.quiets && chance(20)) {
      return {"Q.NACK",
              queue(),
              "WHERE",
              "WORKER",
              one_of({"w1", "w2", "w3"}),
              one_of({"LOST", "SILENT", "FAIL"})};
    }
    Words words{"Q.NACK", queue()};
    add_pairs(words, [&] {
      if (chance(60)) words.push_back(one_of({"SILENT", "FAIL", "FATAL"}));
      if (chance(20)) words.insert(words.end(), {"DELAY", number(0, 300)});
    });
    return words;
  }

  Words touch() {
    Words words{"Q.TOUCH", queue()};
    add_pairs(words, [&] {
      if (chance(60)) words.insert(words.end(), {"LEASE", number(300, 900)});
      if (chance(30)) words.insert(words.end(), {"PROGRESS", number(1, 100)});
      if (chance(40)) words.insert(words.end(), {"LOG", "[" + number(1, 10'000) + "]"});
    });
    if (chance(30)) words.insert(words.end(), {"WORKER", one_of({"w1", "w2"})});
    return words;
  }

  Words read_log(bool blocks) {
    Words words{"Q.LOG", queue(), active_id(), "FROM", number(0, 60), "COUNT", number(1, 20)};
    if (!blocks) return words;
    // From where nothing is yet, mostly.
    const auto end = model_.queue(words[1]).open_log(words[2]);
    if (end.has_value() && chance(80)) words[4] = std::to_string(*end);
    words.insert(words.end(), {"BLOCK", "0"});
    return words;
  }

  // Events of some jobs, or of all, as they come.
  Words follow() {
    if (chance(30)) return read_log(true);
    const std::string name = queue();
    const uint64_t last = model_.queue(name).last_event();
    const uint64_t after = last - std::min<uint64_t>(last, pick(40));
    Words words{"Q.EVENTS", name, chance(60) ? "$" : std::to_string(after)};
    for (size_t left = pick(4); left != 0; --left) {
      words.insert(words.end(), {"ID", active_id()});
    }
    if (chance(20)) words.insert(words.end(), {"TYPE", "progress"});
    if (chance(15)) words.insert(words.end(), {"TYPE", one_of({"completed", "started"})});
    if (chance(20)) words.insert(words.end(), {"COUNT", number(1, 5)});
    if (chance(80)) words.insert(words.end(), {"BLOCK", "0"});
    return words;
  }

  Words cancel() {
    Words words{"Q.CANCEL", queue(), chance(50) ? active_id() : id()};
    if (chance(30)) words.insert(words.end(), {"REASON", "because"});
    if (chance(40)) words.insert(words.end(), {"GRACE", one_of({"0", "50", "2000"})});
    return words;
  }

  Words move() {
    Words words{"Q.MOVE", queue(), id()};
    const size_t kind = pick(5);
    if (kind != 3 && chance(60)) words.insert(words.end(), {"PRI", band()});
    if (kind == 0) words.push_back("FRONT");
    if (kind == 1) words.push_back("BACK");
    if (kind == 2) words.insert(words.end(), {"BOOST", one_of({"-100", "0", "70"})});
    if (kind == 3) words.insert(words.end(), {"DELAY", number(0, 300)});
    if (words.size() == 3) words.insert(words.end(), {"PRI", band()});
    return words;
  }

  Words configure() {
    const std::string name = queue();
    if (style_.quiets && chance(50)) {
      return {"Q.CONFIG",
              name,
              "WORKER",
              one_of({"w1", "w2", "w*"}),
              "SET",
              "quiet",
              one_of({"on", "off", "off"})};
    }
    if (style_.rates && chance(40)) {
      const std::string rate = one_of({"3/100:2", "10/1000", "1/50:1", "1/4000", "0"});
      if (chance(40)) return {"Q.CONFIG", name, "SET", "rate", rate};
      if (chance(50)) return {"Q.CONFIG", name, "GROUP", group(), "SET", "rate", rate};
      return {"Q.CONFIG", name, "KEY", key(), "SET", "rate", rate};
    }
    if (style_.fair && chance(20)) {
      if (chance(20)) return {"Q.CONFIG", name, "SET", "fair", one_of({"on", "on", "off"})};
      const std::string weight = one_of({"1", "2.0", "5"});
      if (chance(20)) return {"Q.CONFIG", name, "SET", "weight", weight};
      return {"Q.CONFIG", name, "GROUP", group(), "SET", "weight", weight};
    }
    if (style_.bytes && chance(40)) {
      const std::string bounds = one_of({"6:3000:48", "9:0:90", "2:3000", "8:900:60"});
      return {"Q.CONFIG", name, "SET", "retain_completed", bounds, "retain_failed", bounds};
    }
    if (style_.reserves && chance(30)) {
      return {"Q.CONFIG", name, "SET", "reserve", one_of({"0:1", "1:2", "2:3"})};
    }
    if (style_.adapts && chance(15)) {
      return {"Q.CONFIG", name, "SET", "adaptive", one_of({"2:5:30:90:1", "3:4:30:90:2"})};
    }
    // Caps at least as large as the cost of one job: larger jobs are rejected.
    const std::string cap = one_of({"0", "2", "3", "5"});
    switch (pick(8)) {
      case 0:
      case 1:
        return {"Q.CONFIG", name, "SET", "max_active", cap};
      case 2:
        return {"Q.CONFIG", name, "GROUP", one_of({"g.*", "g.1", "g.2"}), "SET", "max_active", cap};
      case 3:
        return {"Q.CONFIG", name, "KEY", one_of({"k.*", "k.a"}), "SET", "max_active", cap};
      case 4:
        return {"Q.CONFIG",        name, "SET", "max_waiting", one_of({"0", "5", "8"}), "max_total",
                one_of({"0", "9"})};
      case 5:
        return {"Q.CONFIG", name, "GROUP", group(), "SET", "max_waiting", one_of({"0", "2", "3"})};
      case 6:
        return {"Q.CONFIG", name, "SET", "paused", one_of({"none", "none", "in", "out"})};
      default:
        return {"Q.CONFIG",
                name,
                "GROUP",
                group(),
                "SET",
                "paused",
                one_of({"none", "none", "in", "out"})};
    }
  }

  std::mt19937_64& random_;
  const HistoryStyle style_;
  ModelServer& model_;
  std::string drawn_queue_;
  std::string drawn_id_;
  Words request_;  // the last Q.ACK ... POP that may be repeated
};

}  // namespace sluice::test
