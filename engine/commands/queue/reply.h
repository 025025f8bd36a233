// A job of a native queue in replies: as whoever pops it gets it, and as Q.GET and Q.LIST show it.
//
// Maps in RESP3, flat arrays in RESP2. The names and their order are part of the protocol
// (QUEUE.md). Times are unix milliseconds as the wall clock has them now,
// durations milliseconds. REQUIRES for everything here: the lock of the queue's shard.
#pragma once

#include <cstdint>

#include "engine/base/bytes.h"
#include "engine/execution/call.h"
#include "engine/queue/queue.h"
#include "engine/reply/reply.h"

namespace sluice {

// What Q.POP replies for each job. REQUIRES: the job is active.
void reply_popped_job(Reply& reply, Bytes queue_name, const Queue& queue, const Job& job,
                      const Times& now);

// What Q.GET and Q.LIST tell only where it is asked for (`WITH field`), or leave out (`BRIEF`).
struct ShownFields {
  bool brief = false;  // besides these: id, state and enqueued alone
  bool payload = false;
  bool result = false;
};
// False: there is no such field.
bool parse_shown_field(Bytes name, ShownFields& fields);

// Of what Q.LIST tells of a job the bytes that others chose: all but a few hundred.
size_t shown_bytes(const Job& job, ShownFields with);

// How many pops (Q.POP, Q.ACK ... POP) wait at a key of the client's database.
size_t waiting_pops(const Call& call, const KeyRef& key);

// From where a job is looked at.
struct ShownAt {
  ShownAt(const Call& call, const KeyRef& key, const Queue& queue, ShownFields asked);
  // For a job that has ended.
  ShownAt(const Queue& queue, const Times& now, ShownFields asked);

  Times now;                // queue time is the queue's
  size_t waiting_pops = 0;  // here
  ShownFields with;
};
void reply_shown_job(Reply& reply, const Queue& queue, const Job& job, const ShownAt& at);

}  // namespace sluice
