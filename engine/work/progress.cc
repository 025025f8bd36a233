#include "engine/work/progress.h"

namespace sluice {

namespace {

bool is_followed(QueueWork& work, const Job& job) NO_THREAD_SAFETY_ANALYSIS {
  const WaiterLists& lists = work.database().shard().waiters;
  if (lists.no_queue_waiters()) return false;
  const std::string name(work.key());
  const QueueWaiters* waiters = lists.find_queue(work.database().number(), name);
  if (waiters == nullptr || waiters->by_job.empty()) return false;
  return waiters->follow_job(std::string(job.id()), event_bit(EventType::kProgress));
}

void tell_progress(QueueWork& work, Job* job) {
  EventFields fields;
  fields.add("progress", Bytes(job->extras_if()->progress).substr(0, kMaxTextBytes));
  work.queue().pace_progress(job->id());
  work.record_state(job, EventType::kProgress, fields);
}

}  // namespace

void report_progress(QueueWork& work, Job* job, Bytes progress) {
  Queue& queue = work.queue();
  queue.set_progress(job, progress);
  const bool is_owed = queue.progress_pace != nullptr && queue.progress_pace->owe(job->id());
  if (!is_owed && is_followed(work, *job)) return tell_progress(work, job);
  work.record_state(job, EventType::kNone);
}

void append_log(QueueWork& work, Job* job, Bytes bytes) {
  const uint64_t most = work.queue().config.values().log_bytes;
  if (most == 0 || bytes.empty()) return;
  const JobLog* log = job->extras_if() == nullptr ? nullptr : job->extras_if()->log.get();
  uint64_t at = log == nullptr ? 0 : log->end();
  if (bytes.size() > most) {
    at += bytes.size() - most;
    bytes.remove_prefix(bytes.size() - most);
  }
  const uint64_t end = at + bytes.size();
  work.queue().write_log(job, at, bytes, end > most ? end - most : 0);
  work.record_log(*job, at, bytes);
}

size_t continue_progress(QueueWork& work, size_t limit) {
  Queue& queue = work.queue();
  size_t done = 0;
  for (; done < limit && queue.progress_pace != nullptr; ++done) {
    const auto over = queue.progress_pace->take_over(queue.queue_ms);
    if (!over) break;
    Job* job = over->owed ? queue.find(over->id) : nullptr;
    const bool is_active = job != nullptr && job->state == JobState::kActive;
    if (is_active && is_followed(work, *job)) tell_progress(work, job);
    if (queue.progress_pace->empty()) queue.progress_pace = nullptr;
  }
  return done;
}

}  // namespace sluice
