// The end of a replay: jobs, which have stood in the map of ids alone, enter their indexes, each
// index in its own order.
#include <algorithm>
#include <compare>

#include "engine/base/prefetch_line.h"
#include "engine/queue/queue.h"

namespace sluice {

namespace {

struct Placing {
  uint64_t major;
  uint64_t minor;
  Job* job;
  Lane* lane;  // null: place() looks at the job again
  auto operator<=>(const Placing& other) const {
    return major != other.major ? major <=> other.major : minor <=> other.minor;
  }
};

// What most jobs of a long queue are: all that their place depends on is in the Placing.
bool is_plain(const Job* job) {
  return job->state == JobState::kPending && job->extras_if() == nullptr && !job->lane->lifo;
}

// The order in which places are appended to the indexes of the job's state.
Placing placing_of(Job* job) {
  if (job->state == JobState::kActive) return {job->run()->token, 0, job, nullptr};
  if (is_terminal(job->state)) return {job->end()->finish_order, 0, job, nullptr};
  return {rank_key(job->rank), job->seq, job, is_plain(job) ? job->lane : nullptr};
}

}  // namespace

void Queue::end_replay() {
  if (!replaying_) return;
  replaying_ = false;
  for (auto& [name, worker] : workers_) worker->active.clear();
  place_all();
  lanes.end_replay();
  events.end_replay();
}

void Queue::place_all() {
  // Jobs lie in memory as they came and are met in the order of the map, so reading one waits for
  // the memory. These waits overlap if they are asked for some jobs ahead, and a plain job is read
  // once.
  constexpr size_t kAhead = 16;
  std::vector<Placing> all;
  all.reserve(jobs.size());
  jobs.for_each([&](Job* job) { all.push_back({0, 0, job, nullptr}); });
  for (size_t i = 0; i < all.size(); ++i) {
    if (i + kAhead < all.size()) prefetch_line(all[i + kAhead].job);
    all[i] = placing_of(all[i].job);
    if (all[i].lane != nullptr) count_in(all[i].job, true);
  }
  std::sort(all.begin(), all.end());
  for (size_t i = 0; i < all.size(); ++i) {
    const Placing& next = all[i];
    if (next.lane != nullptr) {
      lanes.add_ticket(next.lane, next.major, next.minor, next.job, queue_ms);
      continue;
    }
    if (i + kAhead < all.size()) prefetch_line(all[i + kAhead].job);
    place(next.job);
  }
}

}  // namespace sluice
