// Jobs that need or follow others: what happens to them when one of those ends.
#include "engine/work/needs.h"

#include "engine/work/ends.h"

namespace sluice {

namespace {

// The most that a unit of work spends on telling dependents of ends. A dependent costs one, and
// more by the number and the length of its other needs, which are in indexes by their texts.
constexpr size_t kToldPerUnit = 256;
constexpr size_t kNeedsForOne = 4;
constexpr size_t kNeedBytesForOne = 1024;

size_t telling_cost(const Job& job) {
  const std::vector<std::string>& unmet = job.extras_if()->unmet;
  size_t bytes = 0;
  for (const std::string& need : unmet) bytes += need.size();
  return 1 + unmet.size() / kNeedsForOne + bytes / kNeedBytesForOne;
}

// The first by rank of the jobs that wait for this id; null: no job does.
Job* first_of(const Queue::Awaiting& awaiting, const std::string& id) {
  const auto found = awaiting.find(id);
  return found == awaiting.end() ? nullptr : found->second.front().value;
}

void meet_need(QueueWork& work, Job* job, const std::string& need) {
  work.telling().cost += telling_cost(*job);
  work.queue().unplace(job);
  std::erase(job->extras().unmet, need);
  work.place_waiting(job);
  // A job that is still delayed is ready when its delay is over.
  work.record_state(job, job->state == JobState::kPending ? EventType::kReady : EventType::kNone);
}

void fail_need(QueueWork& work, Job* job, const std::string& need) {
  work.telling().cost += telling_cost(*job);
  work.queue().unplace(job);
  finish_job(work, job, JobState::kCancelled, "need " + need, {}, nullptr);
}

void begin_release(QueueWork& work, const std::string& need, bool after, bool completed) {
  Queue& queue = work.queue();
  const Release& release = queue.begin_release(queue.next_seq++, need, after, completed);
  work.record_release(release, recorded(release));
}

void meet_all(QueueWork& work, const std::string& id, bool after) {
  const Queue::Awaiting& awaiting = work.queue().awaiting(after);
  Job* job = first_of(awaiting, id);
  for (; job != nullptr && work.telling().cost < kToldPerUnit; job = first_of(awaiting, id)) {
    meet_need(work, job, id);
  }
  if (job != nullptr) begin_release(work, id, after, true);
}

}  // namespace

void resolve_needs(QueueWork& work, const std::string& id, bool completed) {
  const Queue& queue = work.queue();
  Telling& telling = work.telling();
  if (completed) return meet_all(work, id, false);
  if (!queue.dependents.contains(id)) return;
  telling.failed_needs.push_back(id);
  // Chains of needs may be long: one loop, in the outermost call, ends all their jobs.
  if (telling.resolving) return;
  telling.resolving = true;
  while (!telling.failed_needs.empty()) {
    const std::string need = telling.failed_needs.back();
    Job* job = first_of(queue.dependents, need);
    if (job != nullptr && telling.cost < kToldPerUnit) {
      fail_need(work, job, need);
      continue;
    }
    telling.failed_needs.pop_back();
    if (job != nullptr) begin_release(work, need, false, false);
  }
  telling.resolving = false;
}

void release_followers(QueueWork& work, const std::string& id) {
  if (!work.queue().followers.empty()) meet_all(work, id, true);
}

void continue_releases(QueueWork& work) {
  Queue& queue = work.queue();
  // Telling a dependent may end another release, so each turn begins with the first one.
  while (!queue.releases.empty() && work.telling().cost < kToldPerUnit) {
    const Release& release = queue.releases.front();
    if (release.dependents.empty()) {
      ++work.telling().cost;
      work.record_release(release, RecordedRelease::kOver);
      queue.releases.erase(release.number);
      continue;
    }
    Job* job = release.dependents.front().value;
    if (release.completed) {
      meet_need(work, job, release.need);
    } else {
      fail_need(work, job, release.need);
    }
  }
}

}  // namespace sluice
