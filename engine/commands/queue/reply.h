// A job of a native queue in replies: to the pop that takes it, and in Q.GET and Q.LIST.
//
// Maps in RESP3, flat arrays in RESP2. The names and their order are part of the protocol
// (QUEUE.md). Times are unix milliseconds of the present wall clock, durations milliseconds.
// REQUIRES for all functions: the lock of the queue's shard.
#pragma once

#include "engine/base/bytes.h"
#include "engine/execution/call.h"
#include "engine/queue/queue.h"
#include "engine/reply/reply.h"

namespace sluice {

// What a pop shows of each job. The fields that `WITH` asks for are a map behind a brief job;
// otherwise those that the job's map lacks are added to it.
struct PoppedFields {
  bool brief = false;
  bool tags = false;
  bool progress = false;
  bool error = false;
  bool group = false;
  bool need_results = false;  // and whether some are left out: two fields

  size_t asked() const {
    return size_t{tags} + size_t{progress} + size_t{error} + size_t{group} +
           2 * size_t{need_results};
  }
};
// The most bytes of results of needs in the reply of one pop.
inline constexpr size_t kMaxNeedResults = 4 << 20;
// Returns false if there is no such field.
bool parse_popped_field(Bytes name, PoppedFields& fields);

// The reply of Q.POP for each job. `results_left`: what is left of kMaxNeedResults. REQUIRES: the
// job is active.
void reply_popped_job(Reply& reply, Bytes queue_name, const Queue& queue, const Job& job,
                      const Times& now, const PoppedFields& fields, size_t& results_left);

// The fields that Q.GET and Q.LIST reply only on request (`WITH field`), or omit (`BRIEF`).
struct ShownFields {
  bool brief = false;  // besides these only id, state and enqueued
  bool payload = false;
  bool result = false;
  bool options = false;
  bool dependents = false;     // only Q.GET takes it
  size_t progress = SIZE_MAX;  // the most bytes of it
};
// Returns false if there is no such field.
bool parse_shown_field(Bytes name, ShownFields& fields);

// The bytes of a job in Q.LIST that clients have chosen: all but a few hundred.
size_t shown_bytes(const Job& job, ShownFields with);

// The number of pops (Q.POP, Q.ACK ... POP) that wait at a key of the client's database.
size_t waiting_pops(const Call& call, const KeyRef& key);
// Those of any job by what they accept; null: none has waited there.
const WaitingPops* counted_pops(const Call& call, const KeyRef& key);

// The context in which a job is shown.
struct ShownAt {
  ShownAt(const Call& call, const KeyRef& key, Queue& queue, ShownFields asked);
  // For a job that has ended.
  ShownAt(const Queue& queue, const Times& now, ShownFields asked);

  Times now;                // queue time is the queue's
  size_t waiting_pops = 0;  // at this queue
  const WaitingPops* pops = nullptr;
  ShownFields with;
};
void reply_shown_job(Reply& reply, const Queue& queue, const Job& job, const ShownAt& at);

}  // namespace sluice
