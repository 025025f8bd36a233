#include "engine/queue/told_statistics.h"

#include <algorithm>
#include <optional>

namespace sluice {

namespace {

// The statistics begin with the first record that they count.
int64_t begin_at(Queue& queue, const RecordedEvent& event) {
  const int64_t time_ms = event.type == EventType::kNone ? queue.queue_ms : event.time_ms;
  if (queue.stats.since_ms == 0) queue.stats.since_ms = time_ms;
  return time_ms;
}

// The end of the job that a successor has replaced, of which the record has only the event.
std::optional<JobState> end_before_successor(EventType type) {
  switch (type) {
    case EventType::kCompleted:
      return JobState::kCompleted;
    case EventType::kFailed:
      return JobState::kFailed;
    case EventType::kCancelled:
      return JobState::kCancelled;
    default:
      return std::nullopt;
  }
}

void count_end(Queue& queue, const Job& job, JobState state, int64_t time_ms) {
  queue.for_each_stats_line(job, [&](StatsLine& line) { ++(line.totals.*total_of(state)); });
  if (state != JobState::kCompleted) return;
  queue.stats.completed.record(time_ms);
  if (queue.config.values().adaptive.max == 0) return;
  if (++queue.adaptive_runs == Queue::kRunsToAdapt) queue.adaptive_runs = 0;
}

void count_start(Queue& queue, const Job& job, const RecordedState& state) {
  const int64_t waited_ms =
      std::max<int64_t>(0, state.extras.run->started_ms - state.extras.release_ms);
  queue.for_each_stats_line(job, [&](StatsLine& line) {
    ++line.totals.started;
    line.wait_ms.record(waited_ms);
    line.recent_wait_ms.record(waited_ms);
  });
}

// Whether the distributions include the run that is over: it was not given back or lost. One that
// was cancelled counts if its worker has been told so before.
bool counts(const Job& job, const RecordedEvent& event, const RecordedState& state) {
  if (state.state == JobState::kCancelled) return job.run()->cancelled;
  if (job.extras_if()->successor != nullptr && !is_terminal(state.state)) {
    return event.type == EventType::kCompleted || event.type == EventType::kFailed ||
           event.type == EventType::kRetrying;
  }
  return state.extras.crashes == job.extras_if()->crashes &&
         state.extras.attempts >= job.extras_if()->attempts;
}

void count_run(Queue& queue, const Job& job, const RecordedEvent& event,
               const RecordedState& state) {
  const bool is_back = !is_terminal(state.state);
  if (is_back && state.extras.crashes > job.extras_if()->crashes) {
    queue.for_each_stats_line(job, [](StatsLine& line) { ++line.totals.reclaimed; });
  }
  if (!counts(job, event, state) || (is_back && event.type == EventType::kNone)) return;
  const int64_t run_ms = is_back ? std::max<int64_t>(0, event.time_ms - job.run()->started_ms)
                                 : state.extras.end->run_ms;
  queue.for_each_stats_line(job, [&](StatsLine& line) {
    line.run_ms.record(run_ms);
    line.recent_run_ms.record(run_ms);
  });
}

}  // namespace

uint64_t Totals::*total_of(JobState state) {
  switch (state) {
    case JobState::kCompleted:
      return &Totals::completed;
    case JobState::kFailed:
      return &Totals::failed;
    case JobState::kCancelled:
      return &Totals::cancelled;
    default:
      return &Totals::expired;
  }
}

bool count_told_change(Queue& queue, const Job* job, const RecordedEvent& event,
                       const RecordedState& state) {
  if (queue.is_replaying()) return false;
  const bool adds = event.type == EventType::kAdded;
  if (job == nullptr) return adds;
  const int64_t time_ms = begin_at(queue, event);
  const JobRun* const run = job->run();
  const JobRun* const next = state.extras.run.get();
  const bool is_over = run != nullptr && (next == nullptr || next->token != run->token);
  if (is_over) count_run(queue, *job, event, state);
  if (is_over && next == nullptr && !is_terminal(state.state) &&
      job->extras_if()->successor != nullptr) {
    if (const auto end = end_before_successor(event.type)) count_end(queue, *job, *end, time_ms);
  }
  if (is_terminal(state.state) && !is_terminal(job->state)) {
    count_end(queue, *job, state.state, time_ms);
  }
  if (next != nullptr && (run == nullptr || is_over)) count_start(queue, *job, state);
  return adds;
}

void count_told_job(Queue& queue, const Job& job, const RecordedEvent& event) {
  queue.stats.added.record(begin_at(queue, event));
  queue.for_each_stats_line(job, [](StatsLine& line) { ++line.totals.added; });
}

void count_told_removal(Queue& queue, const Job& job, const RecordedEvent& event) {
  if (queue.is_replaying() || is_terminal(job.state)) return;
  count_end(queue, job, JobState::kCancelled, begin_at(queue, event));
}

}  // namespace sluice
