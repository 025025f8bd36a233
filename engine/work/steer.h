// Steering of single jobs: Q.CANCEL and Q.MOVE.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/work/queue_work.h"

namespace sluice {

enum class CancelOutcome : uint8_t { kCancelled, kSignalled, kGone };
// `grace_ms`: how long an active job may still run; 0 ends it at once; absent: as long as its
// lease.
CancelOutcome cancel_job(QueueWork& work, Job* job, Bytes reason, std::optional<int64_t> grace_ms);
// Tells the holder of an active job to stop.
void signal_cancel(QueueWork& work, Job* job, Bytes reason, std::optional<int64_t> grace_ms);

struct MoveSpec {
  std::optional<uint8_t> band;
  bool front = false;
  bool back = false;
  std::optional<int64_t> boost_ms;
  std::optional<int64_t> delay_ms;
  std::optional<int64_t> at_ms;  // as given: of the wall clock
};
// False: the job is not waiting.
bool move_job(QueueWork& work, Job* job, const MoveSpec& spec);

}  // namespace sluice
