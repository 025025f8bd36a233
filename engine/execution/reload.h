// DEBUG RELOAD: writes the records of a checkpoint to memory, drops all data, and replays the
// records. The journal stays valid, since the data does not change.
//
// Clients, waiters, watches and functions are kept, and so is the state of jobs that is not in
// records (the ends and holders of leases, statistics).
#pragma once

#include <memory>

#include "engine/ports/journal.h"

namespace sluice {

class Engine;

// Called under the locks of all shards, with no pending work in the unit. Returns false if the
// records could not be replayed; nothing has changed then.
bool reload_data(Engine& engine);

// A walk over all keys and the places of databases, for a caller that holds the locks of all
// shards.
std::unique_ptr<CheckpointWalk> begin_locked_walk(Engine& engine);

}  // namespace sluice
