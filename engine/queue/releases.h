// Releases: ended jobs that have dependents which have still to be released.
//
// When the need of very many jobs ends, they are released some at a time (QueueWork). A release
// takes over the dependents that exist when it begins; jobs that name the id later depend on the
// job that has the id then. So a blocked job belongs to the first release of its need whose number
// (one of the queue's sequence numbers) is greater than its arrival; without such a release it
// depends on the job of that id.
//
// A passive state of one queue. Jobs are ordered by their ranks, as in Queue::dependents.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "engine/base/bytes.h"
#include "engine/queue/job.h"
#include "engine/structures/ordered_index.h"

namespace sluice {

struct Release {
  uint64_t number = 0;
  std::string need;  // the id of the job that has ended
  bool completed = false;
  OrderedIndex<Job*> dependents;  // (rank_key, seq)
};

class Releases {
 public:
  using ByNumber = std::map<uint64_t, Release>;

  bool empty() const { return by_number_.empty(); }
  size_t size() const { return by_number_.size(); }
  // The oldest one is processed first.
  const ByNumber& by_number() const { return by_number_; }
  // REQUIRES: not empty().
  const Release& front() const { return by_number_.begin()->second; }

  // The release of this need that a job of this arrival belongs to. Null: the job depends on the
  // job of that id.
  Release* find(const std::string& need, uint64_t arrival) const {
    if (by_number_.empty()) return nullptr;
    const auto found = by_need_.upper_bound({need, arrival});
    return found == by_need_.end() || found->first.first != need ? nullptr : found->second;
  }
  // REQUIRES: no release has this number.
  Release& add(uint64_t number, Bytes need, bool completed);
  // REQUIRES: it exists and has no dependents.
  void erase(uint64_t number);

 private:
  ByNumber by_number_;
  std::map<std::pair<std::string, uint64_t>, Release*> by_need_;
};

}  // namespace sluice
