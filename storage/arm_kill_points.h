// Arms the kill points (engine/base/kill_point.h) of a process started by a crash test.
#pragma once

#include "engine/base/kill_point.h"

namespace sluice {

// SLUICE_KILL_POINT=name or name:n sends SIGKILL to this process when the point is passed for the
// n-th time. Without the variable nothing happens. Call once, before threads start.
void kill_points_from_environment();

}  // namespace sluice
