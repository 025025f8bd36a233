// The lines of Q.STATS ... BY WORKER: workers that hold leases, and those that have spoken lately.
// Leases of pops without a worker are in none.
#pragma once

#include <string>
#include <unordered_map>

#include "engine/execution/call.h"
#include "engine/queue/queue.h"

namespace sluice {

// Made for one reply. REQUIRES: the lock of the queue's shard.
class WorkerLines {
 public:
  WorkerLines(Call& call, const KeyRef& key, const Queue& queue);

  bool shows(const Worker& worker) const;
  void put(const Worker& worker) const;
  // The sums of several.
  template <class At>
  void put_rest(At first, At end) const {
    Line sum;
    for (; first != end; ++first) sum.add(line_of(**first));
    put(sum);
  }

 private:
  struct Line {
    uint64_t active = 0;
    int64_t oldest_run_ms = 0;
    uint64_t waiting_pops = 0;
    uint64_t completed = 0;
    uint64_t failed = 0;
    int64_t seen_ms = 0;
    bool quiet = false;

    void add(const Line& other);
  };

  Line line_of(const Worker& worker) const;
  void put(const Line& line) const;

  Reply& reply_;
  const Times& times_;
  const Queue& queue_;
  int64_t now_ms_;
  std::unordered_map<std::string, uint64_t> waiting_;  // pops, by worker
};

}  // namespace sluice
