// Releases: jobs that have ended, some of whose dependents have still to be told of it.
//
// What very many jobs need ends at once, and they hear of it some at a time (QueueWork). A release
// takes over the dependents that it finds: who names the id later needs the job that has it then.
// So a blocked job belongs to the first release of what it needs whose number, which is one of the
// queue's sequence numbers, is greater than that of its arrival; or, where there is none, to the
// job of that id.
//
// A passive state of one queue. Jobs stand here by their ranks, as in Queue::dependents.
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
  // The one that goes on first is the oldest.
  const ByNumber& by_number() const { return by_number_; }
  // REQUIRES: not empty().
  const Release& front() const { return by_number_.begin()->second; }

  // Of this need, for a job of this arrival; null: none, it needs the job of that id.
  Release* find(const std::string& need, uint64_t arrival) const {
    if (by_number_.empty()) return nullptr;
    const auto found = by_need_.upper_bound({need, arrival});
    return found == by_need_.end() || found->first.first != need ? nullptr : found->second;
  }
  // REQUIRES: no release has this number.
  Release& add(uint64_t number, Bytes need, bool completed);
  // REQUIRES: there is one, and it has no dependents.
  void erase(uint64_t number);

 private:
  ByNumber by_number_;
  std::map<std::pair<std::string, uint64_t>, Release*> by_need_;
};

}  // namespace sluice
