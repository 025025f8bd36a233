// What Q.ADD refuses: limits, pauses, needs, costs, waits that are too long.
//
// Each check returns ok, or the refusal. Refusals with a Rejection are counted (Q.STATS
// `rejected`); BADFIELD and NOJOB are not.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/queue/queue_error.h"
#include "engine/work/add.h"

namespace sluice {

Status refused(QueueWork& work, Rejection reason, const QueueError& error);

// The keys that were named, in any order and more than once or not, are those of the set.
bool are_keys(std::span<const Bytes> named, const KeySet& set);

Status check_cost(const Queue& queue, const JobSpec& spec);
// The needs that have not completed yet, and the jobs it comes after that have not ended.
Result<std::vector<std::string>> check_needs(QueueWork& work, const JobSpec& spec);
Status check_pause(QueueWork& work, Paused paused);
// PAUSED and GROUPFULL of the group that IFDUP would move the job to. What replaces a job takes
// its place, or the place of its successor, where that is in the same group.
Status check_other_group(QueueWork& work, const Queue::NamedGroup& group, const Job& job);
// QFULL and GROUPFULL. With `displace` a job of a less urgent band is cancelled to make room, but
// only for a newcomer that can run, and not for one that is refused anyway.
enum class Newcomer : uint8_t { kRuns, kBlocked, kTooLate };
Status check_room(QueueWork& work, const Queue::NamedGroup& group, uint8_t band, Newcomer newcomer);
// TOOLATE, by MAXWAIT.
Status check_wait(QueueWork& work, const JobSpec& spec, uint8_t band,
                  const Queue::NamedGroup& group);

}  // namespace sluice
