// Checks of EVAL, FCALL and their variants before they run anything.
//
// Pure functions of their arguments and of the engine's limits.
#pragma once

#include <span>

#include "engine/base/bytes.h"
#include "engine/base/status.h"

namespace sluice {

class Engine;

// Parses the number of keys in `args[2]`; `no_number`: the error if it is not a number.
Result<size_t> parse_key_count(std::span<const Bytes> args, Bytes no_number);

// Refuses a function, or a script that declares its flags, which may not run now.
Status refuse_declared(Engine& engine, uint32_t flags, bool read_only);

}  // namespace sluice
