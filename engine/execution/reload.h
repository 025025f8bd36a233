// DEBUG RELOAD: the records that a checkpoint would hold go to memory, all data are dropped, and
// the records are replayed. What the journal holds stays right, since nothing has changed.
//
// Clients, waiters, watches, functions and what a queue knows of its jobs besides its records (when
// leases end, whose they are, statistics) stay.
#pragma once

#include <memory>

#include "engine/ports/journal.h"

namespace sluice {

class Engine;

// Under the locks of all shards, with nothing owed by the unit that holds them. False: the records
// could not be replayed, and everything is as it was.
bool reload_data(Engine& engine);

// A walk over all keys, and where SWAPDB has put them, for who holds the locks of all shards.
std::unique_ptr<CheckpointWalk> begin_locked_walk(Engine& engine);

}  // namespace sluice
