// Arms the kill points (engine/base/kill_point.h) of a process that a crash test has started.
#pragma once

#include "engine/base/kill_point.h"

namespace sluice {

// SLUICE_KILL_POINT=name or name:n: SIGKILL to this process when the point is passed for the n-th
// time. Does nothing without the variable. Call once, before threads start.
void kill_points_from_environment();

}  // namespace sluice
