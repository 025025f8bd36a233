#include "engine/commands/queue/await.h"

#include <memory>
#include <utility>

#include "engine/commands/queue/adopted.h"
#include "engine/reply/map_reply.h"

namespace sluice {

namespace {

// Whether the job has ended or does not exist, after a change of the queue: it has adopted plain
// Redis keys, or another queue has this name now.
bool has_ended(const Waiter& waiter, const Entry& entry) {
  if (waiter.queue.queue_gone) return true;
  // In a queue that has adopted plain Redis keys, only the end of a job is signalled by its id.
  if (entry.object<Queue>().adopted != nullptr) return true;
  const Job* job = entry.object<Queue>().find(waiter.queue.job_id);
  return job == nullptr || is_terminal(job->state);
}

// Also called when the queue was removed, and for Q.ADD when the time is over.
void serve_awaited(Call& call, Bytes name) {
  const KeyRef key(name);
  reply_awaited(call, key, find_awaited_queue(call, key), call.waiter->queue.job_id,
                static_cast<const AwaitedJob&>(*call.waiter->request));
}

}  // namespace

void reply_added(Reply& reply, Bytes id, const AddedJob& added) {
  MapReply map(reply, 5);
  map.text("id", id);
  map.text("result", added.result);
  map.text("state", job_state_name(added.state));
  map.integer_or_null("position", added.position);
  map.integer_or_null("eta_ms", added.eta_ms);
}

void AwaitedJob::tell(const Queue& queue, const Job& job, const Times& now, Reply& reply) const {
  if (added) {
    reply.array(2);
    reply_added(reply, job.id(), *added);
  }
  reply_shown_job(reply, queue, job, {queue, now, with});
}

void reply_awaited(Call& call, const KeyRef& key, Queue* queue, Bytes id,
                   const AwaitedJob& request) {
  if (request.added) {
    call.reply.array(2);
    reply_added(call.reply, id, *request.added);
  }
  if (queue != nullptr && queue->adopted != nullptr && !request.added) {
    return get_adopted(call, *queue, request.with);
  }
  const Job* job = queue == nullptr ? nullptr : queue->find(id);
  if (job == nullptr) return call.reply.null();
  reply_shown_job(call.reply, *queue, *job, ShownAt(call, key, *queue, request.with));
}

bool can_be_awaited(const Call& call, const Queue* queue, Bytes id) {
  if (queue == nullptr) return false;
  if (queue->adopted != nullptr) return !adopted_view(call, *queue).find(id).is_nowhere();
  const Job* job = queue->find(id);
  return job != nullptr && !is_terminal(job->state);
}

void await_end(Call& call, Bytes key, Bytes id, AwaitedJob request, int64_t wait_ms) {
  auto waiter = std::make_shared<Waiter>();
  waiter->wanted = Type::kQueue;
  waiter->serve = serve_awaited;
  waiter->accepts = has_ended;
  waiter->queue.job_id = id;
  waiter->served_when_gone = true;
  waiter->served_when_late = request.added.has_value();
  waiter->timeout_ms = wait_ms;
  waiter->request = std::make_unique<AwaitedJob>(std::move(request));
  const Bytes keys[] = {key};
  call.block(keys, std::move(waiter));
}

}  // namespace sluice
