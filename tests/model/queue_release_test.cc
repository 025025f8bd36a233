// Ends of jobs that very many others wait for, against a naive model: random histories of jobs that
// need each other, or come after each other. As many dependents are released as one lock hold
// allows, the others in later slices. In between, the needed jobs are added again; jobs are
// cancelled, moved and replaced; the queue is renamed; the server is restarted from its journal or
// from a checkpoint.
//
// SLUICE_OPERATIONS=n sets the length of each history, SLUICE_SEED=n runs one of them.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "engine/queue/queue.h"
#include "tests/support/queue_talk.h"
#include "tests/support/seeds.h"
#include "tests/support/test.h"

namespace sluice::test {

namespace {

constexpr int kToldPerHold = 256;

// The life of a job from its addition to its end. A job added under the same id after the end is
// another life.
using Life = uint64_t;

struct MadeJob {
  Life life = 0;      // that jobs need: kept where a successor or a replacement takes the id
  Life end_life = 0;  // that jobs come after: it ends with each end
  std::string state;
  std::set<Life> needs;  // of whose end it has not been notified, of both kinds
  bool has_successor = false;
  std::pair<int64_t, uint64_t> place = {};  // determines the turn of dependents

  bool has_ended() const {
    return state == "completed" || state == "failed" || state == "cancelled";
  }
};

// Models needs only; the position of a job is read from the queue.
class NeedsModel {
 public:
  std::map<std::string, MadeJob> jobs;
  bool retains = true;
  Life next_life = 1;

  // A command or a slice begins.
  void begin() { told_ = 0; }

  void end(const std::string& id, const std::string& state) {
    MadeJob& job = jobs.at(id);
    const Life life = job.life;
    const Life end_life = job.end_life;
    if (job.has_successor) {
      job.has_successor = false;
      job.state = "pending";
      job.end_life = next_life++;
      // Jobs that need this id wait for the successor, unless the need has just been met.
      if (state != "completed") return meet(end_life);
      job.life = next_life++;
    } else {
      job.state = state;
      job.needs.clear();
      if (!retains) jobs.erase(id);
    }
    if (state == "completed") {
      meet(life);
    } else {
      fail(life);
    }
    meet(end_life);
  }

  void replace(const std::string& id, const std::set<Life>& needs) {
    MadeJob& job = jobs.at(id);
    const Life end_life = job.end_life;
    job.end_life = next_life++;
    job.needs = needs;
    job.state = needs.empty() ? "pending" : "blocked";
    meet(end_life);
  }

  void clear() {
    jobs.clear();
    releases_.clear();
  }

  void slice() {
    begin();
    while (!releases_.empty() && told_ < kToldPerHold) {
      const auto [life, completed] = releases_.front();
      const std::string id = first_dependent(life);
      if (id.empty()) {
        ++told_;
        releases_.pop_front();
      } else if (completed) {
        meet_one(id, life);
      } else {
        fail_one(id);
      }
    }
  }

  bool is_releasing() const { return !releases_.empty(); }
  bool is_released(Life life) const {
    return std::any_of(releases_.begin(), releases_.end(),
                       [&](const auto& release) { return release.first == life; });
  }
  bool has_dependents(const std::string& id) const {
    const auto found = jobs.find(id);
    return found != jobs.end() && !first_dependent(found->second.life).empty();
  }
  // The `why` of a blocked job.
  std::string why(const std::string& id) const {
    std::set<std::string> live;
    for (const Life need : jobs.at(id).needs) {
      const auto release = std::find_if(releases_.begin(), releases_.end(),
                                        [&](const auto& one) { return one.first == need; });
      if (release != releases_.end()) {
        if (!release->second) return "releasing";
        continue;
      }
      for (const auto& [name, job] : jobs) {
        if (job.life == need || job.end_life == need) live.insert(name);
      }
    }
    return live.empty() ? "releasing" : "blocked_by";
  }

 private:
  std::string first_dependent(Life life) const {
    const std::pair<const std::string, MadeJob>* first = nullptr;
    for (const auto& one : jobs) {
      if (!one.second.needs.contains(life)) continue;
      if (first == nullptr || one.second.place < first->second.place) first = &one;
    }
    return first == nullptr ? std::string() : first->first;
  }
  void meet_one(const std::string& id, Life life) {
    ++told_;
    MadeJob& job = jobs.at(id);
    job.needs.erase(life);
    if (job.needs.empty()) job.state = "pending";
  }
  void fail_one(const std::string& id) {
    ++told_;
    end(id, "cancelled");
  }
  void meet(Life life) {
    for (std::string id = first_dependent(life); !id.empty(); id = first_dependent(life)) {
      if (told_ >= kToldPerHold) return releases_.emplace_back(life, true), void();
      meet_one(id, life);
    }
  }
  void fail(Life life) {
    if (first_dependent(life).empty()) return;
    failed_.push_back(life);
    if (failing_) return;
    failing_ = true;
    while (!failed_.empty()) {
      const Life need = failed_.back();
      const std::string id = first_dependent(need);
      if (!id.empty() && told_ < kToldPerHold) {
        fail_one(id);
        continue;
      }
      failed_.pop_back();
      if (!id.empty()) releases_.emplace_back(need, false);
    }
    failing_ = false;
  }

  int told_ = 0;
  std::deque<std::pair<Life, bool>> releases_;  // and whether it has completed
  std::vector<Life> failed_;
  bool failing_ = false;
};

class ReleaseHistory {
 public:
  explicit ReleaseHistory(uint64_t seed) : random_(seed) {
    model_.retains = pick(2) == 0;
    configure();
  }

  void run(size_t steps) {
    for (size_t i = 0; i < steps; ++i) {
      step(true);
      compare();
    }
    while (model_.is_releasing()) slice();
    compare();
  }
  size_t releasing_seen() const { return releasing_seen_; }

 private:
  size_t pick(size_t count) { return random_() % count; }

  std::string say(const std::string& line) {
    const std::string reply = server_.say(line);
    note(line + " -> " + reply);
    return reply;
  }
  void note(const std::string& what) {
    done_.push_back(what);
    if (done_.size() > 20) done_.pop_front();
  }

  Queue& queue() { return *server_.find_queue(name_); }

  void configure() {
    const std::string kept = model_.retains ? "1000000" : "0";
    REQUIRE(say("Q.CONFIG " + name_ + " SET lease_ms 604800000 retain_completed " + kept +
                " retain_failed " + kept) == "OK");
  }

  // A random job in one of these states; empty if there are none.
  std::string any(const std::set<std::string>& states, bool most_needed = false) {
    std::vector<std::string> ids;
    for (const auto& [id, job] : model_.jobs) {
      if (states.contains(job.state)) ids.push_back(id);
    }
    if (ids.empty()) return {};
    if (most_needed) {
      std::map<Life, size_t> needed;
      for (const auto& [id, job] : model_.jobs) {
        for (const Life need : job.needs) ++needed[need];
      }
      return *std::max_element(ids.begin(), ids.end(), [&](const auto& a, const auto& b) {
        const MadeJob& first = model_.jobs.at(a);
        const MadeJob& second = model_.jobs.at(b);
        return needed[first.life] + needed[first.end_life] <
               needed[second.life] + needed[second.end_life];
      });
    }
    return ids[pick(ids.size())];
  }

  void read_place(const std::string& id) {
    if (const Job* job = queue().find(id)) model_.jobs.at(id).place = {job->rank, job->seq};
  }

  // A new life. `needs`: ids of jobs that have not ended.
  void add(const std::string& id, const std::vector<std::string>& needs, const std::string& more) {
    std::string line = "Q.ADD " + name_ + " " + id + " '' " + more;
    MadeJob job = new_job();
    for (const std::string& need : needs) job.needs.insert(wait_for(need, line));
    if (!needs.empty()) job.state = "blocked";
    const std::string reply = say(line);
    INFO(line, " -> ", reply);
    REQUIRE(reply.find("result=added") != std::string::npos);
    model_.jobs[id] = job;
    read_place(id);
  }

  MadeJob new_job() {
    MadeJob job;
    job.life = model_.next_life++;
    job.end_life = model_.next_life++;
    job.state = "pending";
    return job;
  }

  // Adds the option, of one kind or the other.
  Life wait_for(const std::string& id, std::string& line) {
    const bool after = pick(3) == 0;
    line += (after ? " AFTER " : " NEED ") + id;
    return after ? model_.jobs.at(id).end_life : model_.jobs.at(id).life;
  }

  std::string new_id() {
    // One that has ended, or another one.
    if (pick(3) == 0) {
      const std::string id = any({"completed", "failed", "cancelled"});
      if (!id.empty()) return id;
    }
    if (pick(3) == 0 && next_id_ != 0) {
      const std::string id = "j" + std::to_string(pick(next_id_));
      if (!model_.jobs.contains(id)) return id;
    }
    return "j" + std::to_string(next_id_++);
  }

  void add_several() {
    if (model_.jobs.size() > 1500) return;
    const bool crowd = pick(2) == 0;
    const bool chain = !crowd && pick(4) == 0;
    const size_t count = crowd || chain ? 200 + pick(600) : 1 + pick(5);
    std::vector<std::string> needs;
    for (size_t i = pick(4); i != 0; --i) {
      const std::string id = any({"blocked", "pending", "active"}, pick(3) == 0);
      if (!id.empty() && std::find(needs.begin(), needs.end(), id) == needs.end()) {
        needs.push_back(id);
      }
    }
    for (size_t i = 0; i < count; ++i) {
      const std::string id = new_id();
      if (std::find(needs.begin(), needs.end(), id) != needs.end()) continue;
      add(id, needs,
          "IFDUP REPLACE BOOST " + std::to_string(static_cast<int>(pick(7)) - 3) + " PRI " +
              std::to_string(pick(5)));
      if (chain) needs = {id};
    }
  }

  void end_run() {
    const std::string id = any({"pending"}, pick(2) == 0);
    if (id.empty()) return;
    server_.ids_of(server_.ask("Q.POP 1 " + name_ + " ID " + id));
    if (pick(4) == 0) {
      // What follows after its end may also be needed.
      say("Q.ADD " + name_ + " " + id + " '' IFDUP UPDATE");
      model_.jobs.at(id).has_successor = true;
    }
    if (pick(5) == 0) {
      model_.jobs.at(id).state = "active";
      return;
    }
    finish_run(id);
  }

  void finish_run(const std::string& id) {
    model_.begin();
    const std::string about = name_ + " " + id + " " + server_.lease(id);
    if (pick(2) == 0) {
      REQUIRE(say("Q.ACK " + about) == "OK");
      model_.end(id, "completed");
    } else {
      REQUIRE(say("Q.NACK " + about + " FATAL").rfind("{", 0) == 0);
      model_.end(id, "failed");
    }
    read_place(id);
  }

  void cancel() {
    const std::string id = any({"blocked", "pending"}, pick(2) == 0);
    if (id.empty()) return;
    model_.begin();
    say("Q.CANCEL " + name_ + " " + id);
    model_.end(id, "cancelled");
  }

  void move() {
    const std::string id = any({"blocked"});
    if (id.empty()) return;
    static const char* const kMoves[] = {"BACK", "FRONT", "BOOST 5", "BOOST -5", "PRI 4", "PRI 0"};
    say("Q.MOVE " + name_ + " " + id + " " + kMoves[pick(6)]);
    read_place(id);
  }

  void update() {
    const std::string id = any({"blocked"});
    if (id.empty()) return;
    say("Q.ADD " + name_ + " " + id + " another IFDUP UPDATE");
    read_place(id);
  }

  void replace() {
    const std::string id = any({"blocked", "pending"});
    if (id.empty()) return;
    std::string line = "Q.ADD " + name_ + " " + id + " '' IFDUP REPLACE";
    std::set<Life> needs;
    const std::string need = pick(2) == 0 ? any({"blocked", "pending", "active"}) : "";
    if (!need.empty()) needs.insert(wait_for(need, line));
    const bool refused = !needs.empty() && (need == id || model_.has_dependents(id));
    model_.begin();
    const std::string reply = say(line);
    if (refused) {
      INFO(line);
      REQUIRE(reply.rfind("-BADFIELD field=", 0) == 0);
      return;
    }
    INFO(line, " -> ", reply);
    REQUIRE(reply.rfind("{", 0) == 0);
    model_.replace(id, needs);
    read_place(id);
  }

  void again() {
    const std::string id = any({"completed", "failed", "cancelled"});
    if (id.empty()) return;
    if (pick(3) == 0) {
      const std::string state = model_.jobs.at(id).state;
      // At most 1000 at once, and there are no more than three times as many.
      for (int i = 0; i < 4; ++i) {
        REQUIRE(say("Q.PURGE " + name_ + " WHERE STATE " + state + " LIMIT 1000")[0] == '[');
      }
      std::erase_if(model_.jobs, [&](const auto& job) { return job.second.state == state; });
      return;
    }
    say("Q.RETRY " + name_ + " " + id);
    model_.jobs.at(id) = new_job();
    read_place(id);
  }

  // Releases in progress disappear with the queue.
  void begin_anew() {
    REQUIRE(say("DEL " + name_) == "1");
    model_.clear();
    configure();
  }

  void slice() {
    note("a slice");
    server_.run_some_timers();
    model_.slice();
  }

  void restart() {
    const bool from_checkpoint = pick(2) == 0;
    note(from_checkpoint ? "from a checkpoint" : "from the journal");
    if (from_checkpoint) {
      server_.restart_from_checkpoint(4, [&](uint64_t) {
        if (pick(2) == 0) step(false);
      });
    } else {
      server_.restart(4);
    }
  }

  void step(bool may_restart) {
    if (model_.jobs.size() > 1500 && pick(8) == 0) return begin_anew();
    if (pick(3) == 0) server_.set_clock(server_.wall_ms() + 1, server_.steady_ms() + 1);
    switch (pick(may_restart ? 16 : 14)) {
      case 0:
      case 1:
      case 2:
        return add_several();
      case 3:
      case 4:
        return end_run();
      case 5: {
        const std::string id = any({"active"});
        if (!id.empty()) finish_run(id);
        return;
      }
      case 6:
        return cancel();
      case 7:
        return move();
      case 8:
        return update();
      case 9:
        return replace();
      case 10:
        return again();
      case 11:
        return slice();
      case 12:
        return end_run();
      case 13: {
        if (!may_restart) return;  // the walk may find it under neither name
        const std::string other = name_ == "q" ? "r" : "q";
        REQUIRE(say("RENAME " + name_ + " " + other) == "OK");
        name_ = other;
        return;
      }
      default:
        return restart();
    }
  }

  void compare() {
    Queue& queue = this->queue();
    queue.check();
    std::string done;
    for (const std::string& line : done_) done += line + "\n";
    INFO(done);
    if (model_.is_releasing()) ++releasing_seen_;
    REQUIRE(!queue.releases.empty() == model_.is_releasing());
    std::string wrong;
    for (const auto& [id, job] : model_.jobs) {
      const Job* found = queue.find(id);
      const std::string state(found == nullptr ? "gone" : job_state_name(found->state));
      if (state != job.state) wrong = id + " is " + state + ", not " + job.state;
    }
    queue.jobs.for_each([&](const Job* job) {
      if (!model_.jobs.contains(std::string(job->id())))
        wrong = std::string(job->id()) + " is there";
    });
    REQUIRE(wrong == "");
    const std::string blocked = any({"blocked"});
    if (blocked.empty()) return;
    const std::string why = server_.say("Q.GET " + name_ + " " + blocked, "why");
    INFO(blocked);
    REQUIRE(why.substr(0, why.find(' ')) == model_.why(blocked));
  }

  std::mt19937_64 random_;
  NeedsModel model_;
  QueueTalk server_;
  std::string name_ = "q";
  std::deque<std::string> done_;
  size_t next_id_ = 0;
  size_t releasing_seen_ = 0;
};

}  // namespace

TEST_CASE("histories of jobs that very many others wait for") {
  const char* text = std::getenv("SLUICE_OPERATIONS");
  const size_t operations = text != nullptr ? std::strtoull(text, nullptr, 10) : 250;
  size_t releasing = 0;
  for (const uint64_t seed : testing::seeds(5, 107)) {
    testing::use_seed(seed);
    INFO("SLUICE_SEED=", seed);
    ReleaseHistory history(seed);
    history.run(operations);
    releasing += history.releasing_seen();
  }
  MESSAGE(releasing << " states with releases under way");
  CHECK(releasing > 20);
}

}  // namespace sluice::test
