// Jobs that need others (NEED), or follow them (AFTER): what happens to them when one of those
// ends.
//
// A verb tells at most a few hundred dependents itself; the rest are told by releases, which are
// journaled and continued by timers.
#pragma once

#include <string>

#include "engine/work/queue_work.h"

namespace sluice {

// The job of this id has ended: its dependents may run (`completed`), or are cancelled in turn.
void resolve_needs(QueueWork& work, const std::string& id, bool completed);
// The job of this id has ended, in whatever way: its followers may run.
void release_followers(QueueWork& work, const std::string& id);
// A step of the releases in progress.
void continue_releases(QueueWork& work);

}  // namespace sluice
