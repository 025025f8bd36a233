// Runs that have failed: Q.NACK, retries and their backoff; and Q.RETRY of an ended job.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/base/status.h"
#include "engine/work/queue_work.h"

namespace sluice {

enum class NackMode : uint8_t { kFail, kFatal, kSilent };

struct NackOutcome {
  JobState state{};
  int64_t not_before_ms = 0;  // 0: now
  int64_t attempts_left = 0;
};
// Q.NACK. `lease`: the token, or 0 for `*`; `delay_ms`: instead of the backoff.
Result<NackOutcome> nack_job(QueueWork& work, Bytes id, uint64_t lease, NackMode mode,
                             std::optional<int64_t> delay_ms, Bytes error);
// The same without a word of the worker: somebody else ends the run of an active job.
NackOutcome nack_run(QueueWork& work, Job* job, NackMode mode, std::optional<int64_t> delay_ms,
                     Bytes error);
// How often a failed job is retried: by the job's own RETRY, else the queue's.
uint32_t retries_of(const Job& job, const QueueValues& values);
// After a failed run that was not cancelled, which has been taken off the job: it waits again for
// `delay_ms` or a random part of the backoff, or fails where RETRY allows no further attempt.
void fail_attempt(QueueWork& work, Job* job, const JobRun& run, Bytes error,
                  std::optional<int64_t> delay_ms);
// Q.RETRY: an ended, retained job waits again, as new: attempt 1, ranked now. False: not ended.
bool retry_job(QueueWork& work, Job* job);

}  // namespace sluice
