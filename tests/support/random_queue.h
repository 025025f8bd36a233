// RandomQueue: a queue "q" with a random history: jobs of all kinds added, popped, ended and
// changed while time passes. Used by one thread. Include it before doctest.
#pragma once

#include <iterator>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/queue_client.h"

namespace sluice::test {

using Words = std::vector<std::string>;

inline Words operator+(Words left, const Words& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

struct RandomQueueOptions {
  bool lifo = false;
  bool needs = false;  // jobs that need others
  bool costs = false;  // jobs of several slots
  // Arguments of Q.CONFIG after the queue's name, run one after the other.
  std::vector<Words> config = {};
};

class RandomQueue {
 public:
  explicit RandomQueue(uint64_t seed, RandomQueueOptions options = {})
      : rng_(seed), options_(std::move(options)) {
    const Words keep = {"SET",     "max_active",    "7",        "retry",
                        "1",       "backoff",       "500:5000", "retain_completed",
                        "1000000", "retain_failed", "1000000"};
    require(server.run(Words{"Q.CONFIG", "q"} + keep), "OK");
    if (options_.lifo) require(server.run({"Q.CONFIG", "q", "SET", "order", "lifo:1"}), "OK");
    for (const Words& config : options_.config) {
      require(server.run(Words{"Q.CONFIG", "q"} + config), "OK");
    }
  }

  uint64_t random(uint64_t below) { return rng_() % below; }
  template <class Choice>
  Choice one_of(const std::vector<Choice>& choices) {
    return choices[random(choices.size())];
  }

  void add() {
    const std::string id = "j" + std::to_string(ids.size());
    Words add = {"Q.ADD", "q", id, "payload of " + id, "PRI", std::to_string(random(4))};
    add = add + Words{"GROUP", one_of<std::string>({"", "g1", "g2", "h1"})};
    if (random(3) == 0) add = add + Words{"KEY", one_of<std::string>({"k1", "k2"})};
    if (random(3) == 0) add = add + Words{"TAG", "t", one_of<std::string>({"x", "y"})};
    if (random(4) == 0) add = add + Words{"DELAY", std::to_string(random(3000))};
    if (random(4) == 0) add = add + Words{"TTL", std::to_string(1 + random(8000))};
    if (options_.costs && random(4) == 0) add = add + Words{"COST", std::to_string(1 + random(3))};
    if (random(6) == 0) add = add + Words{"BOOST", std::to_string(random(2000))};
    if (options_.needs && !ids.empty() && random(5) == 0) add = add + Words{"NEED", one_of(ids)};
    if (options_.needs && !ids.empty() && random(9) == 0) add = add + Words{"AFTER", one_of(ids)};
    const RespValue reply = server.run(add);
    // A needed job may have failed or be forgotten; a cost may exceed a cap.
    for (const char* code : {"NEEDFAILED", "NOJOB", "BADFIELD field=cost"}) {
      if (reply.is_error() && reply.text.rfind(code, 0) == 0) return;
    }
    require(RespValue::of(reply.field("result")), "added");
    ids.push_back(id);
  }

  void pop() {
    const RespValue jobs =
        server.run({"Q.POP", "1", "q", "WORKER", one_of<std::string>({"w1", "w2", "w3"}), "COUNT",
                    std::to_string(1 + random(3))});
    if (jobs.is_error()) throw std::runtime_error(jobs.show());
    for (const RespValue& job : jobs.items) leases_[job.field("id")] = job.field("lease");
  }

  // The lease may have expired; that error does not matter here.
  void end_run() {
    if (leases_.empty()) return;
    const auto lease = std::next(leases_.begin(), static_cast<long>(random(leases_.size())));
    const Words who = {"q", lease->first, lease->second};
    switch (random(5)) {
      case 0:
        server.run(Words{"Q.NACK"} + who);
        break;
      case 1:
        server.run(Words{"Q.NACK"} + who + Words{"FATAL", "ERROR", "no room for " + lease->first});
        break;
      case 2:
        server.run(Words{"Q.NACK"} + who + Words{"SILENT"});
        break;
      default:
        server.run(Words{"Q.ACK"} + who);
    }
    leases_.erase(lease);
  }

  void steer() {
    if (ids.empty()) return;
    const std::string id = one_of(ids);
    switch (random(5)) {
      case 0:
        server.run({"Q.CANCEL", "q", id});
        break;
      case 1:
        server.run({"Q.MOVE", "q", id, "PRI", std::to_string(random(4))});
        break;
      case 2:
        server.run({"Q.MOVE", "q", id, "FRONT"});
        break;
      case 3:
        server.run({"Q.MOVE", "q", id, "DELAY", std::to_string(random(2000))});
        break;
      default:
        server.run({"Q.RETRY", "q", id});
    }
  }

  void step() {
    switch (random(12)) {
      case 0:
      case 1:
        return pop();
      case 2:
      case 3:
        return end_run();
      case 4:
        return steer();
      case 5:
        return server.advance(static_cast<int64_t>(random(400)));
      default:
        return add();
    }
  }

  // Q.GET of every job that is still known.
  std::vector<RespValue> all() {
    std::vector<RespValue> jobs;
    for (const std::string& id : ids) {
      RespValue job = server.run({"Q.GET", "q", id});
      if (!job.is_null()) jobs.push_back(std::move(job));
    }
    return jobs;
  }

  QueueClient server;
  Words ids;

 private:
  static void require(const RespValue& reply, const std::string& expected) {
    if (reply.show() != expected) throw std::runtime_error(reply.show() + ", not " + expected);
  }

  std::mt19937_64 rng_;
  RandomQueueOptions options_;
  std::map<std::string, std::string> leases_;
};

}  // namespace sluice::test
