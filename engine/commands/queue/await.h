// Waiting for the end of a job: Q.GET ... WAIT and Q.ADD ... WAIT.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/commands/queue/reply.h"
#include "engine/execution/call.h"
#include "engine/work/serving.h"

namespace sluice {

// What Q.ADD replies besides the id: the moment after the job was put into the queue.
struct AddedJob {
  Bytes result;  // a literal
  JobState state{};
  std::optional<int64_t> position;
  std::optional<int64_t> eta_ms;
};
void reply_added(Reply& reply, Bytes id, const AddedJob& added);

// A job as Q.GET shows it; with `added` in an array, behind the reply of Q.ADD.
struct AwaitedJob final : EndRequest {
  void tell(const Queue& queue, const Job& job, const Times& now, Reply& reply) const override;

  ShownFields with;
  std::optional<AddedJob> added;
};
// Replies the job of this id as it is now; null for an unknown id. `queue` may be null.
void reply_awaited(Call& call, const KeyRef& key, Queue* queue, Bytes id,
                   const AwaitedJob& request);
// Whether the job exists and has not ended.
bool can_be_awaited(const Call& call, const Queue* queue, Bytes id);
// Blocks the client until the job has ended, or for this time (0: without limit). REQUIRES:
// can_be_awaited(), not nested.
void await_end(Call& call, Bytes key, Bytes id, AwaitedJob request, int64_t wait_ms);

}  // namespace sluice
