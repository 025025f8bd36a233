// The logs of a queue's jobs.
#include <utility>

#include "engine/queue/queue.h"

namespace sluice {

template <class Change>
void Queue::change_log(Job* job, Change change) {
  // During a replay nothing is counted yet.
  if (is_replaying()) return change(job->extras().log);
  const bool is_ended = is_terminal(job->state);
  uint64_t& retained = ended_bytes[ended_kind(job->state)];
  job_bytes_ -= job->memory_bytes();
  if (is_ended) retained -= job->retained_bytes();
  change(job->extras().log);
  job_bytes_ += job->memory_bytes();
  if (is_ended) retained += job->retained_bytes();
}

void Queue::write_log(Job* job, uint64_t at, Bytes bytes, uint64_t kept_from) {
  change_log(job, [&](std::unique_ptr<JobLog>& log) {
    if (log == nullptr) log = std::make_unique<JobLog>();
    log->write(at, bytes, kept_from);
  });
}

std::unique_ptr<JobLog> Queue::take_log(Job* job) {
  if (job->extras_if() == nullptr || job->extras_if()->log == nullptr) return nullptr;
  std::unique_ptr<JobLog> taken;
  change_log(job, [&](std::unique_ptr<JobLog>& log) { taken = std::move(log); });
  return taken;
}

}  // namespace sluice
