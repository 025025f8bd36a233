// Why a job is not running: what Q.GET and Q.LIST reply.
#pragma once

#include <string>

#include "engine/base/times.h"
#include "engine/queue/queue.h"

namespace sluice {

// One code with its figures, for people: "behind 4", "group_cap 2/2". Empty: not waiting.
std::string why_waiting(const Queue& queue, const Job& job, const Times& now, bool has_waiters);

}  // namespace sluice
