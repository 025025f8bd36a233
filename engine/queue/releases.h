// Releases: ended jobs that have dependents or followers which have still to be released.
//
// When the need of very many jobs ends, they are released some at a time (work/needs.h). A release
// takes over the dependents that exist when it begins; jobs that name the id later depend on the
// job that has the id then. So a blocked job belongs to the first release of its need whose number
// (one of the queue's sequence numbers) is greater than its arrival; without such a release it
// depends on the job of that id. Dependents (NEED) and followers (AFTER) have releases of their
// own: where a successor or a replacement takes the id, an end may concern only one kind.
//
// A passive state of one queue. Jobs are ordered by their ranks, as in Queue::dependents.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "engine/base/bytes.h"
#include "engine/queue/job.h"
#include "engine/structures/ordered_index.h"

namespace sluice {

struct Release {
  uint64_t number = 0;
  std::string need;  // the id of the job that has ended
  bool followers = false;
  bool completed = false;         // true for followers: any end meets them
  OrderedIndex<Job*> dependents;  // (rank_key, seq)
};

class Releases {
 public:
  using ByNumber = std::map<uint64_t, Release>;

  bool empty() const { return by_number_.empty(); }
  size_t size() const { return by_number_.size(); }
  // Without the dependents, which the queue counts.
  size_t memory_bytes() const {
    return by_number_.size() * (sizeof(*by_number_.begin()) + sizeof(*by_need_.begin()));
  }
  // The oldest one is processed first.
  const ByNumber& by_number() const { return by_number_; }
  // REQUIRES: not empty().
  const Release& front() const { return by_number_.begin()->second; }

  // The release of this need that a job of this arrival belongs to. Null: the job depends on the
  // job of that id.
  Release* find(const std::string& need, bool followers, uint64_t arrival) const {
    if (by_number_.empty()) return nullptr;
    const auto found = by_need_.upper_bound({need, followers, arrival});
    if (found == by_need_.end()) return nullptr;
    Release* release = found->second;
    return release->need == need && release->followers == followers ? release : nullptr;
  }
  Release* find(const std::string& need, const Job& job) const {
    return by_number_.empty() ? nullptr : find(need, job.comes_after(need), job.arrival());
  }
  // REQUIRES: no release has this number.
  Release& add(uint64_t number, Bytes need, bool followers, bool completed);
  // REQUIRES: it exists and has no dependents.
  void erase(uint64_t number);

 private:
  ByNumber by_number_;
  std::map<std::tuple<std::string, bool, uint64_t>, Release*> by_need_;
};

}  // namespace sluice
