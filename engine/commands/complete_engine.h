// CompleteEngine: an engine that knows all commands, and runs scripts and functions.
#pragma once

#include <cstdint>

#include "engine/commands/families.h"
#include "engine/execution/engine.h"

namespace sluice {

// A base, so that it is there before the engine: users have rules about commands.
struct InstalledCommands {
  InstalledCommands() { install_commands(); }
};

class CompleteEngine final : InstalledCommands, public Engine {
 public:
  // `hash_seed`: random for a server, fixed in a simulation. The port outlives the engine.
  CompleteEngine(ServerPort& server, uint64_t hash_seed);
};

}  // namespace sluice
