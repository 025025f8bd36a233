// The dispatch order of a queue: which job is next, and which ones follow. Pops choose by it, `why`
// explains it, and Q.LIST BY DISPATCH looks ahead in it.
//
// REQUIRES for all functions: the lock of the queue's shard.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/queue/queue.h"

namespace sluice {

// The next job among several choices, and its place.
struct DispatchChoice {
  Job* job = nullptr;  // null: none
  int band = 0;        // the effective one
  ReadyKey place;
};

// Whether a job of this band may not take the free slots, because they are reserved for more urgent
// bands (`reserve`).
bool lacks_reserved_slots(const Queue& queue, uint8_t band, uint32_t cost);
// Whether the queue itself has slots for the job now.
bool has_queue_slots(const Queue& queue, const Job& job);
// The band to which a job has risen while it waited (`aging_ms`), by the age of `ticket`.
int effective_band(const Queue& queue, const Job& ticket, int64_t now_ms);
// The expected run time in milliseconds, which fairness charges at the start.
double expected_run_ms(const Queue& queue);

// The first job in dispatch order whose group and keys have room. Slots, rate and pause of the
// queue itself are ignored: they apply to any first job. `match` as in Lanes::next. With
// `keep_reserve`, a job is skipped if its band has no slot besides the reserved ones. A job that
// lacks only some of the slots it needs there remains first (lacks_reserved_slots); only jobs for
// which slots are reserved pass it.
DispatchChoice first_in_order(const Queue& queue, std::span<const std::string> match,
                              int64_t now_ms, bool keep_reserve = true);

// The next `count` jobs in the order in which successive pops would take them, if no run ends and
// nothing else changes. Jobs for which the queue itself has no room now (slots, reserve, rate, a
// pause) come after those for which it has, in the order in which they would start if only that
// changed. Jobs for which a group or a key has no room, counting the jobs before them, are left
// out. Takes the jobs out of their lanes and puts them back: O(count * (1 + s) log n).
std::vector<Job*> next_in_order(Queue& queue, size_t count, int64_t now_ms);

}  // namespace sluice
