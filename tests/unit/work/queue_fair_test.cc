// `fair on` over time: groups that have run alone, groups that pause, groups that are used once.
// The shares of two backlogged groups are tested in queue_rules_test.cc.
#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "tests/support/queue_talk.h"
#include "tests/support/seeds.h"
#include "tests/support/test.h"

namespace sluice::test {

namespace {

// Ways to restart a server.
enum class Restart { kNone, kJournal, kCheckpoint };

class FairTalk : public QueueTalk {
 public:
  FairTalk() { say("Q.CONFIG q SET fair on max_active 1 retain_completed 10:0"); }

  // The group `old` runs `jobs` jobs of 10 ms without competition.
  void run_alone(int jobs) {
    for (int i = 0; i < jobs; ++i) {
      add("old" + std::to_string(i), "GROUP old");
      run_next();
    }
  }
  std::string run_next(int64_t run_ms = 10) {
    std::string id = pop();
    pass(run_ms);
    ack(id);
    return id;
  }
  // A job of a new group.
  void add_newcomer() {
    const std::string name = "new" + std::to_string(newcomers_++);
    add(name, "GROUP " + name);
  }
  // Each run makes room for another newcomer. Returns how many run before this job; at most
  // `limit`.
  int newcomers_before(const std::string& id, int limit) {
    for (int before = 0; before < limit; ++before) {
      if (run_next() == id) return before;
      add_newcomer();
    }
    return limit;
  }
  void restart_as(Restart how) {
    if (how == Restart::kJournal) restart(4);
    if (how == Restart::kCheckpoint) restart_from_checkpoint(4);
  }

 private:
  int newcomers_ = 0;
};

}  // namespace

TEST_CASE("what a group ran while nobody else asked is no debt") {
  for (const Restart how : {Restart::kNone, Restart::kJournal, Restart::kCheckpoint}) {
    INFO("restart ", static_cast<int>(how));
    FairTalk q;
    q.run_alone(200);
    q.restart_as(how);
    for (int i = 0; i < 3; ++i) q.add_newcomer();
    q.add("late", "GROUP old");
    CHECK(q.newcomers_before("late", 100) <= 4);
  }
}

TEST_CASE("a group pays for each slot of its jobs") {
  FairTalk q;
  q.say("Q.CONFIG q SET max_active 3");
  for (int i = 0; i < 12; ++i) {
    q.add("large" + std::to_string(i), "GROUP large COST 3");
    q.add("small" + std::to_string(i), "GROUP small");
  }
  int large = 0;
  for (int i = 0; i < 12; ++i) large += q.run_next()[0] == 'l' ? 1 : 0;
  CHECK(large >= 2);
  CHECK(large <= 4);
}

TEST_CASE("jobs without a group have the weight of the queue") {
  FairTalk q;
  q.say("Q.CONFIG q SET weight 3");
  q.say("Q.CONFIG q GROUP g SET weight 1");
  for (int i = 0; i < 40; ++i) {
    q.add("none" + std::to_string(i));
    q.add("g" + std::to_string(i), "GROUP g");
  }
  int without = 0;
  for (int i = 0; i < 40; ++i) without += q.run_next()[0] == 'n' ? 1 : 0;
  CHECK(without >= 29);
  CHECK(without <= 31);
}

TEST_CASE("nor is it where one other group asks from then on") {
  FairTalk q;
  q.run_alone(200);
  for (int i = 0; i < 100; ++i) q.add("b" + std::to_string(i), "GROUP b");
  q.add("late", "GROUP old");
  CHECK(q.newcomers_before("late", 100) <= 2);
}

TEST_CASE("newcomers who never leave the queue empty do not hold up who has had a turn") {
  FairTalk q;
  for (int i = 0; i < 3; ++i) q.add_newcomer();
  q.add("first second", "GROUP old");
  q.newcomers_before("first", 100);
  for (int i = 0; i < 3; ++i) q.add_newcomer();
  CHECK(q.newcomers_before("second", 100) <= 20);
}

TEST_CASE("a newcomer has no credit, and does not pay for what was charged by a guess") {
  QueueTalk q;
  q.say("Q.CONFIG q SET fair on max_active 8");
  for (int i = 0; i < 200; ++i) q.add("a" + std::to_string(i), "GROUP a");
  // The duration of runs is unknown, so each is charged one second.
  std::string running;
  for (int i = 0; i < 8; ++i) running += q.pop() + " ";
  q.pass(10);
  for (const std::string& id : QueueTalk::words(running)) q.ack(id);
  for (int i = 0; i < 100; ++i) q.add("b" + std::to_string(i), "GROUP b");
  int of_b = 0;
  for (int i = 0; i < 100; ++i) {
    const std::string id = q.pop();
    of_b += id[0] == 'b' ? 1 : 0;
    q.pass(10);
    q.ack(id);
  }
  CHECK(of_b >= 45);
  CHECK(of_b <= 60);
}

TEST_CASE("the virtual time of the queue never goes back, and survives") {
  FairTalk q;
  std::mt19937_64 random(7);
  double before = 0;
  for (int i = 0; i < 400; ++i) {
    q.add("j" + std::to_string(i), "GROUP g" + std::to_string(random() % 9));
    if (random() % 3 != 0) q.run_next(static_cast<int64_t>(random() % 50));
    if (i % 100 == 99) q.restart_as(i % 200 == 99 ? Restart::kJournal : Restart::kCheckpoint);
    const double now = q.find_queue("q")->lanes.virtual_ms();
    CHECK(now >= before);
    before = now;
  }
  CHECK(before > 100);
}

namespace {

// A thousand groups. Of each hundred, 40 always have two jobs waiting, 40 pause between bursts of
// three, and the rest are used once.
class ManyGroups {
 public:
  explicit ManyGroups(uint64_t seed) : random_(seed) {
    q_.say("Q.CONFIG q SET fair on max_active 1 retain_completed 1:0 events 0");
    q_.say("Q.CONFIG q GROUP s*7 SET weight 2");
    for (int i = 0; i < kSteady; ++i) {
      for (int twice = 0; twice < 2; ++twice) add("s" + std::to_string(i));
    }
  }

  void run(int jobs) {
    for (int i = 0; i < jobs; ++i) {
      if (i % 4 == 0) add("once" + std::to_string(i));
      const std::string pausing = "p" + std::to_string(random_() % kPausing);
      if (waiting_[pausing] == 0) {
        for (int burst = 0; burst < 3; ++burst) add(pausing);
      }
      start_next();
    }
  }

  // Slot time / weight of the groups that are always backlogged: the greatest difference.
  double apart_ms() const {
    double least = 1e18;
    double most = 0;
    for (int i = 0; i < kSteady; ++i) {
      const std::string group = "s" + std::to_string(i);
      const auto found = received_ms_.find(group);
      const double ms = found == received_ms_.end() ? 0 : found->second / weight(group);
      least = std::min(least, ms);
      most = std::max(most, ms);
    }
    return most - least;
  }
  // The longest wait of a group that had paused or is used once, in rounds of all groups that were
  // active in the meantime.
  double longest_rounds() const { return longest_rounds_; }

  static constexpr int kSteady = 400;
  static constexpr int kPausing = 400;
  static constexpr int64_t kLongestMs = 15;

 private:
  static double weight(const std::string& group) {
    return group[0] == 's' && group.back() == '7' ? 2 : 1;
  }

  void add(const std::string& group) {
    const std::string id = group + "." + std::to_string(added_++);
    q_.add(id, "GROUP " + group);
    if (waiting_[group]++ == 0) {
      ++asking_;
      since_[group] = started_;
    }
  }

  void start_next() {
    const std::string id = q_.pop();
    const std::string group = id.substr(0, id.find('.'));
    const auto since = since_.find(group);
    if (since != since_.end()) {
      // Groups of double weight have two turns in a round.
      const double round = asking_ + kSteady / 10.0;
      longest_rounds_ = std::max(longest_rounds_, (started_ - since->second) / round);
      since_.erase(since);
    }
    ++started_;
    if (--waiting_[group] == 0) --asking_;
    const auto run_ms = static_cast<int64_t>(5 + random_() % (kLongestMs - 4));
    q_.pass(run_ms);
    q_.ack(id);
    received_ms_[group] += static_cast<double>(run_ms);
    if (group[0] == 's') add(group);
  }

  QueueTalk q_;
  std::mt19937_64 random_;
  std::map<std::string, int> waiting_;
  std::map<std::string, int> since_;  // runs started when it became active
  std::map<std::string, double> received_ms_;
  int added_ = 0;
  int started_ = 0;
  int asking_ = 0;
  double longest_rounds_ = 0;
};

}  // namespace

TEST_CASE("slot time over a thousand groups, of which some pause and some are used once") {
  for (const uint64_t seed : testing::seeds(2, 17)) {
    INFO("SLUICE_SEED=", seed);
    ManyGroups groups(seed);
    groups.run(20'000);
    // One job of maximum length of each of the two.
    CHECK(groups.apart_ms() <= 2 * ManyGroups::kLongestMs);
    CHECK(groups.longest_rounds() <= 2);
  }
}

}  // namespace sluice::test
