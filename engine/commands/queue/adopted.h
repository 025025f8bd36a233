// Queues that show plain Redis keys (Q.ADOPT), in commands that also know queues of jobs.
//
// REQUIRES for everything here: queue.adopted is not null. The shards of its keys are locked, as
// for every command on such a queue (Execution::lock_for).
#pragma once

#include "engine/access/acl_rules.h"
#include "engine/adopted/adopted_view.h"
#include "engine/adopted/adopted_work.h"
#include "engine/commands/queue/reply.h"
#include "engine/execution/call.h"
#include "engine/work/steer.h"

namespace sluice {

AdoptedView adopted_view(const Call& call, const Queue& queue);
AdoptedWork adopted_work(const Call& call);

// Whether who has sent the command may use the payload of this member, whether it is there or not.
// False with NOPERM replied.
bool check_payload(Call& call, const Queue& queue, Bytes id, KeyRight right);

// A member as Q.GET and Q.LIST show jobs; null for one that is nowhere.
void get_adopted(Call& call, const Queue& queue, ShownFields with);
void list_adopted(Call& call, const Queue& queue, const Selector& selector, JobOrder order,
                  Bytes cursor, size_t count, ShownFields with);
void move_adopted(Call& call, Queue& queue, const MoveSpec& spec);
void cancel_adopted(Call& call, Queue& queue, Bytes reason);

}  // namespace sluice
