// The end of a replay: jobs that were only in the map of ids enter their indexes, each index in its
// own order. And the end of a unit on a standby, where they are in their indexes.
#include <algorithm>
#include <future>
#include <span>
#include <utility>
#include <vector>

#include "engine/base/check.h"
#include "engine/base/prefetch_line.h"
#include "engine/queue/queue.h"

namespace sluice {

namespace {

struct Placing {
  uint64_t major;
  uint64_t minor;
  Job* job;
  Lane* lane;  // null: place() reads the job again
};
using Placings = std::span<Placing>;

// An object, which std::sort calls inline: a function costs it a quarter more.
constexpr auto is_before = [](const Placing& a, const Placing& b) {
  return a.major != b.major ? a.major < b.major : a.minor < b.minor;
};

void sort(Placings places) { std::sort(places.begin(), places.end(), is_before); }

// The one that begins with the least Placing. It is empty if both are.
Placings& least_of(Placings& one, Placings& other) {
  return other.empty() || (!one.empty() && !is_before(other[0], one[0])) ? one : other;
}

// From this number on a second thread pays off.
constexpr size_t kMany = 1 << 14;
// Some hundred of these batches pass in a second.
constexpr size_t kJobsPerPulse = 1 << 14;
// Jobs lie in memory in order of arrival and are read in another order, so each read waits for
// memory. Prefetching some jobs ahead overlaps these waits.
constexpr size_t kAhead = 16;

// Most jobs of a long queue are plain: the Placing holds everything that their place depends on.
bool is_plain(const Job* job) {
  return job->state == JobState::kPending && job->extras_if() == nullptr && !job->lane->lifo;
}

// The order in which jobs are added to the indexes of their state.
Placing placing_of(Job* job) {
  if (job->state == JobState::kActive) return {job->run()->token, 0, job, nullptr};
  if (is_terminal(job->state)) return {job->end()->finish_order, 0, job, nullptr};
  return {rank_key(job->rank), job->seq, job, is_plain(job) ? job->lane : nullptr};
}

// Adds the jobs that are not plain to `others`. Returns false if the plain ones are not in order.
bool read_arrivals(std::span<Job* const> table, std::vector<Placing>& others,
                   const std::function<void()>& pulse) {
  Placing last{};
  for (size_t i = 0; i < table.size(); ++i) {
    if (i % kJobsPerPulse == 0) pulse();
    if (i + kAhead < table.size()) prefetch_line(table[i + kAhead]);
    if (table[i] == nullptr) continue;
    const Placing next = placing_of(table[i]);
    if (next.lane == nullptr) {
      others.push_back(next);
    } else if (is_before(next, last)) {
      return false;
    } else {
      last = next;
    }
  }
  return true;
}

// The Placings of the plain jobs of a table. There are only some at a time, as all of them would
// take more memory than the map of ids.
class PlainJobs {
 public:
  explicit PlainJobs(std::span<Job* const> table) : table_(table) {}

  // The next ones, each of which was given to visit(). None: there are no more.
  template <class Visit>
  Placings next(Visit visit) {
    placings_.clear();
    for (; at_ < table_.size() && placings_.size() < kMost; ++at_) {
      if (at_ + kAhead < table_.size()) prefetch_line(table_[at_ + kAhead]);
      if (table_[at_] == nullptr || !is_plain(table_[at_])) continue;
      placings_.push_back(placing_of(table_[at_]));
      visit(table_[at_]);
    }
    return placings_;
  }

 private:
  static constexpr size_t kMost = 4096;

  std::span<Job* const> table_;
  size_t at_ = 0;
  std::vector<Placing> placings_;
};

}  // namespace

void Queue::end_replay(const std::function<void()>& pulse) {
  if (!is_replaying()) return;
  const std::unique_ptr<Arrivals> arrivals = std::move(arrivals_);
  workers.clear_runs();
  place_all(*arrivals, pulse);
  lanes.end_replay();
  events.end_replay();
}

void Queue::take_told(const ConfigChange& change) {
  if (is_replaying() || change.scope != ConfigScope::kLevel) {
    return reconfigure(change, SIZE_MAX, nullptr);
  }
  if (change.level == ConfigLevel::kWorker) return;
  told_levels_[static_cast<size_t>(change.level) - 1] = true;
}

void Queue::end_told() {
  for (const ConfigLevel level : {ConfigLevel::kGroup, ConfigLevel::kKey}) {
    bool& told = told_levels_[static_cast<size_t>(level) - 1];
    if (!std::exchange(told, false)) continue;
    reconfigure({.scope = ConfigScope::kLevel, .level = level}, SIZE_MAX, nullptr);
  }
  lanes.forget_absent_shares();
  lanes.run_rates(queue_ms);
}

void Queue::place_all(const Arrivals& arrivals, const std::function<void()>& pulse) {
  std::vector<Placing> all;
  const bool in_order = arrivals.known() && read_arrivals(arrivals.table(), all, pulse);
  if (!in_order) {
    all.clear();
    all.reserve(jobs.size());
    jobs.for_each([&](Job* job) { all.push_back({0, 0, job, nullptr}); });
  }
  PlainJobs plain(in_order ? arrivals.table() : std::span<Job* const>());
  const auto read = [this, &pulse](Placings places) {
    for (size_t i = 0; i < places.size(); ++i) {
      if (i % kJobsPerPulse == 0) pulse();
      if (i + kAhead < places.size()) prefetch_line(places[i + kAhead].job);
      places[i] = placing_of(places[i].job);
      if (places[i].lane != nullptr) count_in(places[i].job, true);
    }
  };
  const auto place_next = [this](Placings& places) {
    const Placing& next = places.front();
    if (next.lane != nullptr) {
      lanes.add_ticket(next.lane, next.major, next.minor, next.job, queue_ms);
    } else {
      place(next.job);
    }
    places = places.subspan(1);
    if (places.size() > kAhead && places[kAhead].lane == nullptr) {
      prefetch_line(places[kAhead].job);
    }
  };
  Placings low = Placings(all).first(all.size() / 2);
  Placings high = Placings(all).last(all.size() - low.size());
  read(low);
  // Only that thread accesses this half meanwhile.
  // If there is no second thread, the half is sorted in wait().
  const auto policy =
      all.size() < kMany ? std::launch::deferred : std::launch::async | std::launch::deferred;
  const std::future<void> sorted = std::async(policy, sort, low);
  read(high);
  sort(high);
  sorted.wait();
  Placings arrived;
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (i % kJobsPerPulse == 0) pulse();
    if (arrived.empty()) arrived = plain.next([this](const Job* job) { count_in(job, true); });
    Placings& least = least_of(arrived, least_of(low, high));
    CHECK(!least.empty());
    place_next(least);
  }
}

}  // namespace sluice
