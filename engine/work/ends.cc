// How a job ends, or waits again after a run, and how long it is retained.
#include "engine/work/ends.h"

#include <utility>

#include "engine/base/prefetch_line.h"
#include "engine/queue/told_statistics.h"
#include "engine/reply/reply.h"
#include "engine/work/add.h"
#include "engine/work/needs.h"
#include "engine/work/serving.h"

namespace sluice {

namespace {

// A verb drops at most this many ended jobs that are no longer retained; timers drop the rest.
constexpr size_t kDroppedPerVerb = 16;

EventType event_of(JobState state) {
  switch (state) {
    case JobState::kCompleted:
      return EventType::kCompleted;
    case JobState::kFailed:
      return EventType::kFailed;
    case JobState::kCancelled:
      return EventType::kCancelled;
    default:
      return EventType::kExpired;
  }
}

}  // namespace

namespace {

// The waiters for one job, or null.
const QueueWaiters::ByOrder* waiters_for(QueueWork& work,
                                         const Job& job) NO_THREAD_SAFETY_ANALYSIS {
  const WaiterLists& lists = work.database().shard().waiters;
  if (lists.no_queue_waiters()) return nullptr;
  const QueueWaiters* waiters = lists.find_queue(work.database().number(), std::string(work.key()));
  if (waiters == nullptr || waiters->by_job.empty()) return nullptr;
  const auto found = waiters->by_job.find(std::string(job.id()));
  return found == waiters->by_job.end() ? nullptr : &found->second;
}

}  // namespace

void tell_end(QueueWork& work, const Job& job) NO_THREAD_SAFETY_ANALYSIS {
  const QueueWaiters::ByOrder* waiters = waiters_for(work, job);
  if (waiters == nullptr) return;
  const bool has_successor = job.extras_if()->successor != nullptr;
  std::vector<std::shared_ptr<Waiter>> told;
  for (const auto& [order, waiter] : *waiters) {
    const auto* request = dynamic_cast<const EndRequest*>(waiter->request.get());
    if (request == nullptr || waiter->queue.queue_gone) continue;
    if (has_successor && request->awaits_successor) continue;
    told.push_back(waiter);
  }
  WaiterLists& lists = work.database().shard().waiters;
  const std::string name(work.key());
  for (const std::shared_ptr<Waiter>& waiter : told) {
    lists.remove(name, waiter.get());
    if (!waiter->claim()) continue;
    Delivery delivery{waiter->port, {}, Delivery::Kind::kBlockedReply};
    RespReply reply(delivery.bytes, waiter->protocol);
    if (!waiter->refuse_without_right(reply)) {
      static_cast<const EndRequest&>(*waiter->request).tell(work.queue(), job, work.times(), reply);
    }
    work.unit().deliveries.push_back(std::move(delivery));
  }
}

void end_replaced(QueueWork& work, Job* job) {
  JobExtras& extras = job->extras();
  extras.error = "replaced";
  extras.unmet.clear();
  extras.end = std::make_unique<JobEnd>();
  extras.end->finished_ms = work.queue().queue_ms;
  job->state = JobState::kCancelled;
  tell_end(work, *job);
  work.queue().place(job);
  work.queue().erase(job);
}

void tell_succession(QueueWork& work, const Job& job) {
  const QueueWaiters::ByOrder* waiters = waiters_for(work, job);
  if (waiters == nullptr) return;
  for (const auto& [order, waiter] : *waiters) {
    auto* request = dynamic_cast<EndRequest*>(waiter->request.get());
    if (request != nullptr) request->awaits_successor = false;
  }
}

void finish_job(QueueWork& work, Job* job, JobState state, Bytes error, Bytes result,
                const JobRun* run) {
  Queue& queue = work.queue();
  queue.for_each_stats_line(*job, [&](StatsLine& line) { ++(line.totals.*total_of(state)); });
  if (state == JobState::kCompleted) queue.stats.completed.record(queue.queue_ms);
  EventFields fields;
  if (run != nullptr) fields.add("lease", static_cast<int64_t>(run->token));
  if (!error.empty()) fields.add("error", error);
  const std::string id(job->id());
  JobExtras& extras = job->extras();
  extras.error = error;
  extras.unmet.clear();
  extras.end = std::make_unique<JobEnd>();
  extras.end->finished_ms = queue.queue_ms;
  extras.end->result = result;
  if (run != nullptr) {
    extras.end->last_token = run->token;
    extras.end->run_ms = queue.queue_ms - run->started_ms;
  }
  job->state = state;
  tell_end(work, *job);
  if (extras.successor != nullptr) {
    if (state == JobState::kCompleted) extras.acknowledged = extras.end->last_token;
    extras.end = nullptr;
    become_successor(work, job, event_of(state), fields);
    // Jobs that need this id wait for the successor, unless the need has just been met.
    if (state == JobState::kCompleted) resolve_needs(work, id, true);
    release_followers(work, id);
    work.signal();
    return;
  }
  if (extras.log != nullptr) extras.log->bytes.shrink_to_fit();
  extras.end->finish_order = queue.next_finish++;
  queue.place(job);
  work.record_state(job, event_of(state), fields);
  drop_retained(work, kDroppedPerVerb);
  resolve_needs(work, id, state == JobState::kCompleted);
  release_followers(work, id);
  work.signal();
}

void finish_cancelled(QueueWork& work, Job* job, const JobRun& run) {
  finish_job(work, job, JobState::kCancelled, run.cancel_reason, {}, &run);
}

void return_job(QueueWork& work, Job* job, int64_t gate_ms, EventType event,
                const EventFields& fields) {
  if (job->extras().successor != nullptr) {
    become_successor(work, job, event, fields);
  } else {
    job->extras().bind();
    if (job->lane->lifo) work.change_lane(job, job->band, true);
    job->extras().gate_ms = gate_ms;
    work.place_waiting(job);
    work.record_state(job, event, fields);
  }
  work.signal();
}

namespace {

// The next jobs to be dropped are rarely in the cache, and each part of a job is found only by the
// one before it: so a part of each is fetched a drop ahead of the next part.
void prefetch_oldest(const OrderedIndex<Job*>& ended) {
  if (ended.size() < 3) return;
  auto at = ended.begin();
  at.value()->prefetch_end();
  at.next();
  at.value()->prefetch_extras();
  at.next();
  prefetch_line(at.value());
}

}  // namespace

void drop_retained(QueueWork& work, size_t limit) {
  Queue& queue = work.queue();
  const QueueValues& values = queue.config.values();
  const Retention* const bounds[] = {&values.retain_completed, &values.retain_failed};
  for (size_t kind = 0; kind < 2; ++kind) {
    auto& ended = queue.ended[kind];
    for (size_t left = limit; left != 0 && !ended.empty(); --left) {
      const auto [order, finished_ms, oldest] = ended.front();
      const Retention& bound = *bounds[kind];
      const bool too_old =
          bound.age_ms != 0 && static_cast<int64_t>(finished_ms) + bound.age_ms <= queue.queue_ms;
      if (!too_old && !queue.retains_too_much(kind)) break;
      work.record_gone(oldest->id(), EventType::kNone);
      queue.erase(oldest);
      prefetch_oldest(ended);
    }
  }
}

void forget_job(QueueWork& work, Job* job) {
  CHECK(is_terminal(job->state));
  work.record_gone(job->id(), EventType::kForgotten);
  work.queue().erase(job);
}

}  // namespace sluice
