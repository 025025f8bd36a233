// The history of a run of the execution queue and the check of its order, which is made after the
// run so that it costs the measured load next to nothing.
//
// Times are ticks of a logical clock of the client, which advances before every write and after
// every read: if a reply was read at tick 5 and another request was written at tick 6, then the
// server ran the first before the second. Overlapping requests prove nothing and are not counted as
// errors of the server. Used by one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::bench {

struct JobHistory {
  uint64_t order = 0;     // place in dispatch order; smaller leaves first
  uint64_t added = 0;     // tick of the read that acknowledged the add, 0 = not yet
  uint64_t pop_sent = 0;  // tick of the write that asked for it
  uint64_t pop_read = 0;  // tick of the read that brought it, 0 = not popped
};

struct OrderReport {
  uint64_t checked = 0;
  uint64_t never_popped = 0;
  uint64_t overtaken = 0;  // jobs that were pending when a later one was popped
};

// A job y was overtaken if some x that comes later in the order was asked for after y's add had
// been acknowledged, and x had arrived before y was asked for. The jobs are swept by the time of
// y's request; a Fenwick tree over the order holds the latest request among the x that have
// arrived.
class OrderCheck {
 public:
  static OrderReport run(const std::vector<JobHistory>& jobs) {
    OrderReport report;
    std::vector<uint32_t> by_sent;
    for (uint32_t i = 0; i < jobs.size(); ++i) {
      if (jobs[i].added == 0) continue;
      if (jobs[i].pop_read == 0) {
        ++report.never_popped;
      } else {
        by_sent.push_back(i);
      }
    }
    std::vector<uint32_t> by_read = by_sent;
    std::vector<uint32_t> by_order = by_sent;
    const auto sort_by = [&](std::vector<uint32_t>& index, uint64_t JobHistory::*field) {
      std::sort(index.begin(), index.end(),
                [&](uint32_t a, uint32_t b) { return jobs[a].*field < jobs[b].*field; });
    };
    sort_by(by_sent, &JobHistory::pop_sent);
    sort_by(by_read, &JobHistory::pop_read);
    sort_by(by_order, &JobHistory::order);
    std::vector<uint32_t> place(jobs.size());
    const auto count = static_cast<uint32_t>(by_order.size());
    // Places are mirrored so that "later in the order" is a prefix of the tree; equals share a
    // place, because neither of them can overtake the other.
    for (uint32_t i = count; i-- > 0;) {
      const bool tie = i + 1 < count && jobs[by_order[i]].order == jobs[by_order[i + 1]].order;
      place[by_order[i]] = tie ? place[by_order[i + 1]] : count - i;
    }

    LatestBelow latest(count);
    size_t arrived = 0;
    for (const uint32_t y : by_sent) {
      while (arrived < by_read.size() && jobs[by_read[arrived]].pop_read < jobs[y].pop_sent) {
        const uint32_t x = by_read[arrived++];
        latest.raise(place[x], jobs[x].pop_sent);
      }
      if (latest.maximum(place[y] - 1) > jobs[y].added) ++report.overtaken;
    }
    report.checked = count;
    return report;
  }

 private:
  // A Fenwick tree of prefix maxima, places 1..count.
  class LatestBelow {
   public:
    explicit LatestBelow(uint32_t count) : tree_(count + size_t{1}, 0) {}
    void raise(uint32_t place, uint64_t value) {
      for (uint64_t i = place; i < tree_.size(); i += i & (~i + 1)) {
        tree_[i] = std::max(tree_[i], value);
      }
    }
    uint64_t maximum(uint32_t place) const {
      uint64_t best = 0;
      for (uint64_t i = place; i > 0; i -= i & (~i + 1)) best = std::max(best, tree_[i]);
      return best;
    }

   private:
    std::vector<uint64_t> tree_;
  };
};

}  // namespace sluice::bench
