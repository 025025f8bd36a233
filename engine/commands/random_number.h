// The randomness of commands that choose elements or keys.
//
// Any thread.
#pragma once

#include <cstdint>

namespace sluice {

// A pseudo-random number, not for secrets.
uint64_t random_number();

}  // namespace sluice
