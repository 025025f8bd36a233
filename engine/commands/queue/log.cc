// Q.LOG: what the runs of a job have written, at once or as it is written.
#include <algorithm>
#include <memory>

#include "engine/commands/queue/args.h"
#include "engine/commands/queue/queues.h"
#include "engine/work/serving.h"

namespace sluice {

namespace {

constexpr int64_t kDefaultBytes = 64 << 10;
constexpr int64_t kMaxBytes = 1 << 20;

uint64_t end_of_log(const Job& job) {
  const JobExtras* extras = job.extras_if();
  return extras == nullptr || extras->log == nullptr ? 0 : extras->log->end();
}

struct LogRequest final : EndRequest {
  void tell(const Queue&, const Job& job, const Times&, Reply& reply) const override {
    reply_log(reply, job);
  }
  // A log that ends before `from` has begun anew, or a crash has lost its end: then the reply
  // begins where it ends now.
  void reply_log(Reply& reply, const Job& job) const {
    const uint64_t end = end_of_log(job);
    Bytes bytes;
    uint64_t at = std::min(from, end);
    if (end != 0) {
      const JobLog& log = *job.extras_if()->log;
      at = std::max(at, log.offset);
      bytes = Bytes(log.bytes).substr(at - log.offset, most);
    }
    const uint64_t next = at + bytes.size();
    reply.array(4);
    reply.integer(static_cast<int64_t>(at));
    reply.bulk(bytes);
    reply.integer(static_cast<int64_t>(next));
    reply.boolean(is_terminal(job.state) && next == end);
  }
  bool waits_for(const Job& job) const {
    return !is_terminal(job.state) && from == end_of_log(job);
  }

  uint64_t from = 0;
  size_t most = kDefaultBytes;
};

bool has_more(const Waiter& waiter, const Entry& entry) {
  if (waiter.queue.queue_gone) return true;
  const Job* job = entry.object<Queue>().find(waiter.queue.job_id);
  return job == nullptr || !static_cast<const LogRequest&>(*waiter.request).waits_for(*job);
}

void reply_log(Call& call, const Queue* queue, Bytes id, const LogRequest& request) {
  const Job* job = queue == nullptr ? nullptr : queue->find(id);
  job == nullptr ? call.reply.null() : request.reply_log(call.reply, *job);
}

// Also called when the queue was removed, and when the time is over.
void serve_log(Call& call, Bytes name) {
  reply_log(call, find_awaited_queue(call, KeyRef(name)), call.waiter->queue.job_id,
            static_cast<const LogRequest&>(*call.waiter->request));
}

}  // namespace

void q_log_command(Call& call) {
  const KeyRef key = call.key(1);
  if (!check_job_id(call, 2)) return;
  auto request = std::make_unique<LogRequest>();
  std::optional<int64_t> block_ms;  // 0: without limit
  OptionReader options(call, 3);
  while (options.next()) {
    if (options.is("FROM", 1)) {
      request->from = static_cast<uint64_t>(options.integer(0, kMaxExact).value_or(0));
    } else if (options.is("COUNT", 1)) {
      request->most = static_cast<size_t>(options.integer(1, kMaxBytes).value_or(kDefaultBytes));
    } else if (options.is("BLOCK", 1)) {
      block_ms = options.time();
    } else {
      options.unknown();
    }
  }
  if (options.failed()) return;
  const Found<Queue> queue = find_own_queue(call, key);
  if (queue.refused()) return;
  const Job* job = queue == nullptr ? nullptr : queue->find(call.args[2]);
  const bool waits = block_ms && !call.nested && job != nullptr && request->waits_for(*job);
  if (!waits) return reply_log(call, queue, call.args[2], *request);
  auto waiter = std::make_shared<Waiter>();
  waiter->wanted = Type::kQueue;
  waiter->serve = serve_log;
  waiter->accepts = has_more;
  waiter->served_when_gone = true;
  waiter->served_when_late = true;
  waiter->timeout_ms = *block_ms;
  waiter->queue.job_id = call.args[2];
  waiter->request = std::move(request);
  const Bytes keys[] = {call.args[1]};
  call.block(keys, std::move(waiter));
}

}  // namespace sluice
