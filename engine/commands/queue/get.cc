// Q.GET: one job, at once or when it has ended.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "engine/commands/queue/adopted.h"
#include "engine/commands/queue/args.h"
#include "engine/commands/queue/queues.h"
#include "engine/commands/queue/reply.h"
#include "engine/work/serving.h"

namespace sluice {

namespace {

struct GetRequest final : EndRequest {
  void tell(const Queue& queue, const Job& job, const Times& now, Reply& reply) const override {
    reply_shown_job(reply, queue, job, {queue, now, with});
  }

  ShownFields with;
  std::optional<int64_t> wait_ms;  // 0: without limit
};

// False with the error replied.
bool parse_get(Call& call, GetRequest& request) {
  OptionReader options(call, 3);
  while (options.next()) {
    if (options.is("WITH", 1)) {
      if (!parse_shown_field(options.value(), request.with)) options.bad_value();
    } else if (options.is("WAIT", 1)) {
      request.wait_ms = options.time();
    } else {
      options.unknown();
    }
  }
  return !options.failed();
}

void reply_job(Call& call, const KeyRef& key, const Queue* queue, const GetRequest& request) {
  if (queue != nullptr && queue->adopted != nullptr) {
    return get_adopted(call, *queue, request.with);
  }
  const Job* job = queue == nullptr ? nullptr : queue->find(call.args[2]);
  if (job == nullptr) return call.reply.null();
  reply_shown_job(call.reply, *queue, *job, ShownAt(call, key, *queue, request.with));
}

// Whether the job has ended or does not exist, after a change of the queue: it has adopted plain
// Redis keys, or another queue has this name now.
bool has_ended(const Waiter& waiter, const Entry& entry) {
  // In a queue that has adopted plain Redis keys, only the end of a job is signalled by its id.
  if (entry.object<Queue>().adopted != nullptr) return true;
  const Job* job = entry.object<Queue>().find(waiter.queue.job_id);
  return job == nullptr || is_terminal(job->state);
}

// Whether the job exists and has not ended.
bool can_be_awaited(const Call& call, const Queue* queue) {
  if (queue == nullptr) return false;
  if (queue->adopted != nullptr) return !adopted_view(call, *queue).find(call.args[2]).is_nowhere();
  const Job* job = queue->find(call.args[2]);
  return job != nullptr && !is_terminal(job->state);
}

// Also called when the queue was removed.
void serve_get(Call& call, Bytes name) {
  const KeyRef key(name);
  const Entry* entry = call.find(key);
  const bool is_queue = entry != nullptr && entry->type() == Type::kQueue;
  const auto& request = static_cast<const GetRequest&>(*call.waiter->request);
  reply_job(call, key, is_queue ? &entry->object<Queue>() : nullptr, request);
}

}  // namespace

void q_get_command(Call& call) {
  const KeyRef key = call.key(1);
  const Found<const Queue> queue = find_queue(call, key);
  GetRequest request;
  if (queue.refused() || !check_job_id(call, 2) || !parse_get(call, request)) return;
  if (!request.wait_ms || call.nested || !can_be_awaited(call, queue))
    return reply_job(call, key, queue, request);
  auto waiter = std::make_shared<Waiter>();
  waiter->wanted = Type::kQueue;
  waiter->serve = serve_get;
  waiter->accepts = has_ended;
  waiter->queue.job_id = call.args[2];
  waiter->user = call.client.user;
  waiter->served_when_gone = true;
  waiter->timeout_ms = *request.wait_ms;
  waiter->request = std::make_unique<GetRequest>(std::move(request));
  const Bytes keys[] = {call.args[1]};
  call.block(keys, std::move(waiter));
}

}  // namespace sluice
