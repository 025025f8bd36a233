// CompleteEngine: an engine with all commands, and with scripts and functions.
#pragma once

#include <cstdint>

#include "engine/commands/families.h"
#include "engine/execution/engine.h"

namespace sluice {

// A base class, so that it is initialized before the engine: users have rules about commands.
struct InstalledCommands {
  InstalledCommands() { install_commands(); }
};

class CompleteEngine final : InstalledCommands, public Engine {
 public:
  // `hash_seed`: random for a server, fixed in a simulation. The port must outlive the engine.
  CompleteEngine(ServerPort& server, uint64_t hash_seed);
};

}  // namespace sluice
