// Queues that have adopted plain Redis keys (Q.ADOPT), for commands that work on queues of jobs as
// well.
//
// REQUIRES for all functions: queue.adopted is not null. The shards of its keys are locked, as for
// every command on such a queue (Execution::lock_for).
#pragma once

#include "engine/access/acl_rules.h"
#include "engine/adopted/adopted_view.h"
#include "engine/adopted/adopted_work.h"
#include "engine/commands/queue/reply.h"
#include "engine/commands/queue/where.h"
#include "engine/execution/call.h"
#include "engine/work/steer.h"

namespace sluice {

AdoptedView adopted_view(const Call& call, const Queue& queue);
AdoptedWork adopted_work(const Call& call);

// Whether the client may access the payload of this member, whether or not that exists. Returns
// false with NOPERM replied.
bool check_payload(Call& call, const Queue& queue, Bytes id, KeyRight right);

// A member in the form of Q.GET and Q.LIST; null if it does not exist.
void get_adopted(Call& call, const Queue& queue, ShownFields with);
void list_adopted(Call& call, const Queue& queue, const ListRequest& request);
void move_adopted(Call& call, Queue& queue, const MoveSpec& spec);
void cancel_adopted(Call& call, Queue& queue, Bytes reason);

}  // namespace sluice
