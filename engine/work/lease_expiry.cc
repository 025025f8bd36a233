// Leases and run limits that expire, and leases that are tied to a lost connection.
#include "engine/work/lease_expiry.h"

#include "engine/work/ends.h"
#include "engine/work/retry.h"
#include "engine/work/run.h"

namespace sluice {

namespace {

// Tied leases of lost connections that are shortened at once; timers shorten the rest.
constexpr size_t kShortenedAtOnce = 1024;

void exceed_run(QueueWork& work, Job* job) {
  count_failed_run(*job);
  const JobRun run = end_run(work, job, true);
  if (run.cancelled) return finish_cancelled(work, job, run);
  fail_attempt(work, job, run, "max_run", std::nullopt);
}

// Shortens at most `left` leases of the connection, and counts them off; false: it has more.
bool shorten_leases(Queue& queue, LostConnection& lost, size_t& left) {
  auto at = queue.tied.lower_bound(lost.client_id, lost.next_token);
  for (; at.valid() && at.major() == lost.client_id; at.next()) {
    if (left == 0) return false;
    --left;
    Job* job = at.value();
    if (job->run()->deadline_steady > lost.latest_steady) {
      queue.set_deadline(job, lost.latest_steady);
    }
    lost.next_token = at.minor() + 1;
  }
  return true;
}

}  // namespace

void lose_lease(QueueWork& work, Job* job, Bytes error) {
  Queue& queue = work.queue();
  count_failed_run(*job);
  const JobRun run = end_run(work, job, false);
  if (run.cancelled) return finish_cancelled(work, job, run);
  JobExtras& extras = job->extras();
  ++extras.crashes;
  if (extras.crashes > queue.config.values().crash_limit) {
    return finish_job(work, job, JobState::kFailed, error, {}, &run);
  }
  queue.for_each_stats_line(*job, [](StatsLine& line) { ++line.totals.reclaimed; });
  EventFields fields;
  fields.add("lease", static_cast<int64_t>(run.token));
  return_job(work, job, 0, EventType::kReclaimed, fields);
}

size_t expire_leases(QueueWork& work, size_t limit) {
  Queue& queue = work.queue();
  size_t done = 0;
  const int64_t now = work.times().steady_ms;
  while (done < limit && !queue.leases.empty() &&
         static_cast<int64_t>(queue.leases.front().major) <= now) {
    Job* job = queue.leases.front().value;
    if (job->run()->run_deadline_steady <= now) {
      exceed_run(work, job);
    } else {
      lose_lease(work, job, kLeaseLost);
    }
    ++done;
  }
  return done;
}

void lose_connection(QueueWork& work, uint64_t client_id) {
  Queue& queue = work.queue();
  const int64_t now = work.times().steady_ms;
  LostConnection lost{client_id, 0, now, now + queue.config.values().disconnect_grace_ms};
  size_t left = kShortenedAtOnce;
  if (!shorten_leases(queue, lost, left)) queue.lost_connections.push_back(lost);
  work.change_timers();
}

void continue_lost_connections(QueueWork& work) {
  Queue& queue = work.queue();
  auto& lost = queue.lost_connections;
  size_t left = kShortenedAtOnce;
  while (!lost.empty() && shorten_leases(queue, lost.front(), left)) lost.erase(lost.begin());
  // Due now, and not earlier: the timers of other queues come first.
  if (!lost.empty()) lost.front().due_steady = work.times().steady_ms;
}

}  // namespace sluice
