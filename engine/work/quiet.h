// Workers that are quiet (`Q.CONFIG ... WORKER glob SET quiet on`): they get no new jobs, and
// continue what they run. And workers of which nothing is heard any more.
#pragma once

#include <memory>

#include "engine/keyspace/waiter.h"
#include "engine/work/queue_work.h"

namespace sluice {

// Puts the pops that wait at a queue (null: the queue is missing) where they belong: those of quiet
// workers get nothing, and stand before nobody.
void sort_quiet(QueueWaiters& waiters, const Queue* queue);
// The rule of a glob has changed: waiting pops are sorted, and the connections of workers that are
// quiet by it are told.
void quiet_changed(QueueWork& work, Bytes pattern);
// The pop has begun to wait at this queue, where its worker is quiet.
void begin_quiet_wait(QueueWork& work, const std::shared_ptr<Waiter>& waiter);
// The queue begins or gets this name, where pops may wait already: their workers are known from now
// on.
void hear_waiting(QueueWork& work);
// Forgets workers that have been silent for `worker_ttl_ms`, and the rules for single ones that
// were not heard of for a day.
void forget_workers(QueueWork& work);

}  // namespace sluice
