// Workers: who takes jobs from a queue. The holders of its leases, and those that have spoken
// lately.
//
// A worker without a lease is kept until it has been silent for `worker_ttl_ms`; of too many the
// one that has been silent longest is forgotten. Leases are journaled, all else is what this
// process has seen. Times are queue time. Part of a Queue.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "engine/base/bytes.h"
#include "engine/structures/ordered_index.h"

namespace sluice {

class Job;

struct Worker {
  std::string name;
  // The last REQID, also of a pop that got nothing. Only leases are journaled, so a restart
  // restores the one of the last lease.
  std::string request_token;
  OrderedIndex<Job*> active;  // its leases: (started_ms, token), oldest first
  int64_t seen_ms = 0;        // when it spoke last; 0: not since the process began
  uint64_t completed = 0;
  uint64_t failed = 0;
  uint64_t number = 0;
  bool idle = false;  // it is in the index of those without a lease
};

class Workers {
 public:
  // At most this many are kept, and all that hold leases.
  static constexpr size_t kMost = 10'000;
  using ByName = std::map<std::string, std::unique_ptr<Worker>, std::less<>>;

  const ByName& by_name() const { return by_name_; }
  Worker* find(Bytes name) const;
  // Finds or makes a worker. Null for the empty name.
  Worker* join(Bytes name);
  // A worker has spoken. Makes a missing one; null for the empty name.
  Worker* hear(Bytes name, int64_t now_ms);
  void hear(Worker* worker, int64_t now_ms);
  // A pop of the worker has this request token. Null is allowed; a pop without a token (empty)
  // keeps the one before.
  void note_request(Worker* worker, Bytes token);
  // A job that it runs is put into the indexes of the queue, or taken out.
  void add_run(Worker* worker, Job* job);
  void remove_run(Worker* worker, Job* job);
  void clear_runs();
  // A run is over. Forgets a worker that holds no lease and has not spoken. Null is allowed.
  void leave(Worker* worker);

  // When a worker without a lease was heard of at the earliest; INT64_MAX: there is no such worker.
  int64_t oldest_ms() const;
  // Forgets those that were not heard of since `before_ms`, `limit` at most. Those of which
  // `stays(name)` is true have spoken now.
  template <class Stays>
  void forget_silent(int64_t before_ms, int64_t now_ms, size_t limit, Stays stays) {
    for (; limit != 0 && oldest_ms() <= before_ms; --limit) {
      Worker* worker = idle_.front().value;
      stays(worker->name) ? hear(worker, now_ms) : forget(worker);
    }
  }
  // Takes over what is not journaled.
  void keep(const Workers& from);

  size_t memory_bytes() const { return bytes_ + idle_.memory_bytes(); }

 private:
  void begin_idle(Worker* worker);
  void end_idle(Worker* worker);
  void forget(Worker* worker);

  ByName by_name_;
  OrderedIndex<Worker*> idle_;  // without a lease: (seen_ms, number)
  uint64_t last_number_ = 0;
  size_t bytes_ = 0;
};

}  // namespace sluice
