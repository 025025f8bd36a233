// The indexes of blocked jobs: who waits for the end of which job.
#include <algorithm>
#include <map>
#include <tuple>

#include "engine/base/check.h"
#include "engine/queue/queue.h"

namespace sluice {

namespace {

// What an id takes in a map, without its index.
size_t awaiting_node_bytes(const std::string& need) {
  constexpr size_t kNodeBytes = 3 * sizeof(void*) + sizeof(Queue::Awaiting::value_type);
  return kNodeBytes + need.size();
}

}  // namespace

OrderedIndex<Job*>& Queue::dependents_of(const std::string& need, const Job* job) {
  Release* release = releases.find(need, *job);
  if (release != nullptr) return release->dependents;
  const auto [at, is_new] = awaiting(job->comes_after(need)).try_emplace(need);
  if (is_new) awaiting_bytes_ += awaiting_node_bytes(need);
  return at->second;
}

void Queue::add_awaiting(const std::string& need, Job* job) {
  OrderedIndex<Job*>& here = dependents_of(need, job);
  awaiting_bytes_ -= here.memory_bytes();
  here.insert(rank_key(job->rank), job->seq, job);
  awaiting_bytes_ += here.memory_bytes();
}

void Queue::forget_awaiting(Awaiting& all, Awaiting::iterator at) {
  awaiting_bytes_ -= awaiting_node_bytes(at->first);
  all.erase(at);
}

void Queue::unplace_blocked(Job* job) {
  for (const std::string& need : job->extras().unmet) {
    OrderedIndex<Job*>& here = dependents_of(need, job);
    awaiting_bytes_ -= here.memory_bytes();
    const bool found = here.erase(rank_key(job->rank), job->seq, job);
    CHECK(found);
    awaiting_bytes_ += here.memory_bytes();
    // A release without dependents ends in its turn.
    if (!here.empty() || releases.find(need, *job) != nullptr) continue;
    Awaiting& all = awaiting(job->comes_after(need));
    forget_awaiting(all, all.find(need));
  }
}

const Release& Queue::begin_release(uint64_t number, const std::string& need, bool after,
                                    bool completed) {
  Awaiting& all = awaiting(after);
  const auto found = all.find(need);
  CHECK(found != all.end());
  Release& release = releases.add(number, need, after, completed);
  release.dependents.swap(found->second);
  forget_awaiting(all, found);
  return release;
}

std::vector<Job*> Queue::take_awaiting(const std::string& need, bool after) {
  std::vector<Job*> waiting;
  const auto take = [&](OrderedIndex<Job*>& index) {
    awaiting_bytes_ -= index.memory_bytes();
    while (!index.empty()) waiting.push_back(index.pop_front().value);
    awaiting_bytes_ += index.memory_bytes();
  };
  Awaiting& all = awaiting(after);
  if (const auto live = all.find(need); live != all.end()) {
    take(live->second);
    forget_awaiting(all, live);
  }
  for (uint64_t arrival = 0; Release* release = releases.find(need, after, arrival);) {
    take(release->dependents);
    arrival = release->number;
  }
  return waiting;
}

void Queue::put_awaiting(const std::string& need, const std::vector<Job*>& waiting) {
  for (Job* job : waiting) add_awaiting(need, job);
}

void Queue::add_release(uint64_t number, const std::string& need, bool after, bool completed) {
  // A release of this number has not changed. If its need differs, the record is damaged.
  if (releases.by_number().contains(number)) return;
  if (!is_replaying() && awaiting(after).contains(need)) {
    // Nothing that waits came later than the record.
    begin_release(number, need, after, completed);
    return;
  }
  const std::vector<Job*> waiting = take_awaiting(need, after);
  releases.add(number, need, after, completed);
  put_awaiting(need, waiting);
}

void Queue::drop_release(uint64_t number, const std::string& need) {
  const auto known = releases.by_number().find(number);
  if (known == releases.by_number().end() || known->second.need != need) return;
  if (known->second.dependents.empty()) return releases.erase(number);
  const std::vector<Job*> waiting = take_awaiting(need, known->second.followers);
  releases.erase(number);
  put_awaiting(need, waiting);
}

// A blocked job is listed exactly once at each need, or release of it, that it waits for.
void Queue::check_dependents() {
  std::map<std::tuple<Bytes, bool, const Release*>, uint64_t> waiting_for;
  size_t bytes = 0;
  jobs.for_each([&](const Job* job) {
    if (job->state != JobState::kBlocked) return;
    for (const std::string& need : job->extras_if()->unmet) {
      ++waiting_for[{need, job->comes_after(need), releases.find(need, *job)}];
    }
  });
  const auto check_index = [&](const std::string& need, bool after,
                               const OrderedIndex<Job*>& blocked, const Release* release) {
    CHECK(blocked.size() == (waiting_for[{need, after, release}]));
    bytes += blocked.memory_bytes();
    for (auto at = blocked.begin(); at.valid(); at.next()) {
      const Job* job = at.value();
      const std::vector<std::string>& unmet = job->extras_if()->unmet;
      CHECK(job->comes_after(need) == after);
      CHECK(job->state == JobState::kBlocked && job->seq == at.minor());
      CHECK(rank_key(job->rank) == at.major());
      CHECK(std::find(unmet.begin(), unmet.end(), need) != unmet.end());
    }
  };
  for (const auto& [number, release] : releases.by_number()) {
    CHECK(number == release.number);
    check_index(release.need, release.followers, release.dependents, &release);
  }
  for (const bool after : {false, true}) {
    for (const auto& [need, blocked] : awaiting(after)) {
      CHECK(!blocked.empty());
      bytes += awaiting_node_bytes(need);
      check_index(need, after, blocked, nullptr);
    }
  }
  CHECK(waiting_for.size() == dependents.size() + followers.size() + releases.size());
  CHECK(bytes == awaiting_bytes_);
}

}  // namespace sluice
