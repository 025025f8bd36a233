// Arrivals: the jobs of a queue in order of arrival, while a journal is replayed. Jobs lie in
// memory in about this order, so a walk over millions of them is several times as fast as one in
// the order of the map of ids.
//
// It is a table by Job::seq. It gives up, and is not known from then on, when it would be mostly
// empty, or when a number is less than the first one: the jobs of a checkpoint come in the order of
// the map.
//
// Threads: as for the queue. Ownership: the queue owns the jobs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/queue/job.h"

namespace sluice {

class Arrivals {
 public:
  // The number of a job must not change from add() to remove().
  void add(Job* job) {
    if (!known_) return;
    if (count_ == 0) {
      jobs_.clear();
      first_ = job->seq;
    }
    const uint64_t at = job->seq - first_;  // A great number if the job is before the first one.
    if (at >= jobs_.size() && !make_room(at)) return give_up();
    Job*& place = jobs_[job->seq - first_];
    if (place != nullptr) return give_up();
    place = job;
    ++count_;
  }
  void remove(const Job* job) {
    if (!known_) return;
    const uint64_t at = job->seq - first_;
    if (at >= jobs_.size() || jobs_[at] != job) return give_up();
    jobs_[at] = nullptr;
    --count_;
  }

  // Whether the table holds all jobs that were added and not removed.
  bool known() const { return known_; }
  // Those, with null pointers between them.
  std::span<Job* const> table() const { return jobs_; }

 private:
  // A table of this size may be empty.
  static constexpr size_t kSmall = 1024;
  static constexpr size_t kMostPlacesPerJob = 4;

  // Makes `at` a place of the table, which may drop empty places in front. Returns false if it
  // would be too large.
  bool make_room(uint64_t at);
  void give_up() {
    *this = {};
    known_ = false;
  }

  uint64_t first_ = 0;  // the number of jobs_[0]
  std::vector<Job*> jobs_;
  size_t count_ = 0;  // without null pointers
  bool known_ = true;
};

}  // namespace sluice
