// Effects as text, for people: sluice-journal and tests.
//
// Pure functions.
#pragma once

#include <string>

#include "engine/unit/effects.h"

namespace sluice {

// One line. Long values are cut.
std::string describe_effect(const Effect& effect);

}  // namespace sluice
