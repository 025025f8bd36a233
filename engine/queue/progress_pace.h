// ProgressPace: when the jobs of a queue have had their last `progress` events, so that each job
// has at most one a second.
//
// A job is here for a second after such an event. What it reports meanwhile is owed: its last
// progress follows when the second is over. Nothing of it is journaled. Plain data of one queue,
// under the shard's lock.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "engine/base/bytes.h"

namespace sluice {

class ProgressPace {
 public:
  static constexpr int64_t kIntervalMs = 1000;

  bool empty() const { return due_.empty(); }
  // When the next second is over, in queue time. REQUIRES: !empty().
  int64_t next_due_ms() const { return due_.front().first; }
  // Whether the job has had an event in this second; then another one is owed.
  bool owe(Bytes id);
  // The job has an event now. REQUIRES: !owe(id), times do not go back.
  void begin(Bytes id, int64_t now_ms);
  // Removes a job whose second is over. Nothing: every job is within its second.
  struct Over {
    std::string id;
    bool owed = false;
  };
  std::optional<Over> take_over(int64_t now_ms);
  size_t memory_bytes() const;

 private:
  std::deque<std::pair<int64_t, std::string>> due_;
  std::unordered_map<std::string, bool> owed_;
};

}  // namespace sluice
