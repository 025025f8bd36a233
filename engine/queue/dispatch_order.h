// The dispatch order of a queue: who goes next, and who after that. Pops choose by it, `why` tells
// of it, Q.LIST BY DISPATCH looks ahead in it.
//
// REQUIRES for everything here: the lock of the queue's shard.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/queue/queue.h"

namespace sluice {

// A job that is next, and its place among several choices.
struct DispatchChoice {
  Job* job = nullptr;  // null: none
  int band = 0;        // the effective one
  ReadyKey place;
};

// Whether a job of this band has to leave the slots that are kept for more urgent ones (`reserve`).
bool lacks_reserved_slots(const Queue& queue, uint8_t band, uint32_t cost);
// Whether the queue itself has slots for it now.
bool has_queue_slots(const Queue& queue, const Job& job);
// The band to which it has risen while it waited (`aging_ms`). `ticket`: whose age counts.
int effective_band(const Queue& queue, const Job& ticket, int64_t now_ms);
// How long a run will take, milliseconds: what fairness charges for it at first.
double expected_run_ms(const Queue& queue);

// The first job in dispatch order whose group and keys have room. Slots, rate and pause of the
// queue itself are not looked at: they hold for whoever is first. `match` as in Lanes::next.
// `keep_reserve`: none for whose band no slot is left beside the reserved ones. One that lacks only
// some of its slots there is first all the same (lacks_reserved_slots), and nobody passes it but
// those for whom they are reserved.
DispatchChoice first_in_order(const Queue& queue, std::span<const std::string> match,
                              int64_t now_ms, bool keep_reserve = true);

// The next `count` jobs in the order in which pops would take them, one after the other, without an
// end of a run or anything else in between. What the queue itself has no room for now (slots,
// reserve, rate, a pause) stands behind what it has room for, in the order in which it goes if
// nothing but that changes; what a group or a key has no room for, those before it counted, is not
// among them. Takes them out of their lanes and puts them back: O(count * (1 + s) log n).
std::vector<Job*> next_in_order(Queue& queue, size_t count, int64_t now_ms);

}  // namespace sluice
