// Checks of EVAL, FCALL and their variants before they run anything.
//
// Pure functions of their arguments and of the engine's limits.
#pragma once

#include <span>
#include <string>

#include "engine/base/bytes.h"

namespace sluice {

class Engine;

// Parses the number of keys in `args[2]`. Returns false with the error in `error`, which is
// `no_number` if it is not a number.
bool parse_key_count(std::span<const Bytes> args, Bytes no_number, size_t& count, Bytes& error);

// Why a function, or a script that declares its flags, is refused. Empty if it is not.
std::string refuse_declared(Engine& engine, uint32_t flags, bool read_only);

}  // namespace sluice
