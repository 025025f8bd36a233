// What a queue does when a time has come.
#include "engine/work/timers.h"

#include "engine/work/configure.h"
#include "engine/work/ends.h"
#include "engine/work/lease_expiry.h"
#include "engine/work/needs.h"
#include "engine/work/progress.h"
#include "engine/work/quiet.h"

namespace sluice {

size_t run_queue_timers(QueueWork& work, size_t limit) {
  Queue& queue = work.queue();
  const int64_t now = queue.queue_ms;
  continue_releases(work);
  continue_lost_connections(work);
  size_t done = expire_leases(work, limit);
  while (done < limit && !queue.delays.empty() &&
         static_cast<int64_t>(queue.delays.front().major) <= now) {
    Job* job = queue.delays.front().value;
    queue.unplace(job);
    job->extras().gate_ms = 0;
    work.place_waiting(job);
    work.record_state(job, EventType::kReady);
    ++done;
  }
  while (done < limit && !queue.ttls.empty() &&
         static_cast<int64_t>(queue.ttls.front().major) <= now) {
    Job* job = queue.ttls.front().value;
    work.settle(job);
    work.unplace_waiting(job);
    ++done;
    finish_job(work, job, JobState::kExpired, "ttl", {}, nullptr);
  }
  done += continue_progress(work, limit - done);
  const uint64_t ended = queue.ended[0].size() + queue.ended[1].size();
  drop_retained(work, limit);
  done += ended - queue.ended[0].size() - queue.ended[1].size();
  const uint64_t kept = queue.events.count();
  queue.events.trim(queue.config.values().events, now, limit);
  // The head records how many are kept, so that a restart does not bring old ones back.
  if (queue.events.count() != kept) work.touched();
  continue_reconfiguring(work);
  forget_workers(work);
  queue.run_rates_for_pops();
  // A refilled rate makes work possible without any other change.
  work.signal();
  work.change_timers();
  return done;
}

}  // namespace sluice
