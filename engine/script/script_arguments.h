// What EVAL, FCALL and their relatives check before they run anything.
//
// Pure functions of their arguments and of the engine's limits.
#pragma once

#include <span>
#include <string>

#include "engine/base/bytes.h"

namespace sluice {

class Engine;

// The number of keys in `args[2]`. False with the error in `error`, `no_number` where it is none.
bool parse_key_count(std::span<const Bytes> args, Bytes no_number, size_t& count, Bytes& error);

// What stands against a script that declares its flags, or a function. Empty: nothing.
std::string refuse_declared(Engine& engine, uint32_t flags, bool read_only);

}  // namespace sluice
