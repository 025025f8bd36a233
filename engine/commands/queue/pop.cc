// Q.POP, and its waiters.
#include "engine/commands/queue/pop.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "engine/base/numbers.h"
#include "engine/commands/queue/queues.h"
#include "engine/commands/queue/reply.h"
#include "engine/execution/engine.h"
#include "engine/queue/queue_error.h"
#include "engine/work/quiet.h"
#include "engine/work/serving.h"

namespace sluice {

namespace {

// Begins the reply of a pop: in front of the jobs, null or the error stands what was answered
// before.
void begin_answered(Reply& reply, const Answers& answers) {
  if (answers.empty()) return;
  reply.array(2);
  reply_answers(reply, answers);
}

// A waiting pop, and the form of its reply.
struct AnsweredPop final : PopRequest {
  PoppedFields fields;
  Answers answers;
  void begin_reply(Reply& reply) const override { begin_answered(reply, answers); }
};

void reply_jobs(Call& call, Bytes name, const Queue& queue, const std::vector<Job*>& jobs,
                const PoppedFields& fields) {
  size_t results_left = kMaxNeedResults;
  call.reply.array(jobs.size());
  for (const Job* job : jobs) {
    reply_popped_job(call.reply, name, queue, *job, call.unit.times, fields, results_left);
  }
}

// kReplied: with jobs or an error, behind the answers. Otherwise this queue has no job for this pop
// now, or none at all while its worker is quiet.
enum class Taken : uint8_t { kReplied, kNothing, kQuiet };

Taken pop_from(Call& call, const KeyRef& key, const PopSpec& spec, const PoppedFields& fields,
               const Answers& answers) {
  // Q.ACK, which alone has answers, has found the queue before.
  const Found<Queue> queue = find_own_queue(call, key);
  if (queue.refused()) return Taken::kReplied;
  if (queue == nullptr) {
    if (!spec.id) return Taken::kNothing;
    begin_answered(call.reply, answers);
    call.reply.error(
        QueueError("GONE").with("id", Bytes(*spec.id)).with("state", "unknown").text());
    return Taken::kReplied;
  }
  QueueWork work = queue_work(call, key, *queue);
  const Result<std::vector<Job*>> jobs = pop_jobs(work, spec, holder_of(call.client));
  if (!jobs.ok()) {
    begin_answered(call.reply, answers);
    call.reply.error(jobs.status().message());
    return Taken::kReplied;
  }
  if (jobs->empty()) {
    // In a transaction other pops may still have to be served.
    if (!call.nested) queue->pops_found_nothing();
    return queue->config.quiet(spec.worker) ? Taken::kQuiet : Taken::kNothing;
  }
  begin_answered(call.reply, answers);
  reply_jobs(call, key.key, *queue, *jobs, fields);
  return Taken::kReplied;
}

// Whether the worker holds jobs that it got by this very request.
bool holds_request(const Queue& queue, const PopSpec& spec) {
  if (!is_repeated_pop(&queue, spec)) return false;
  const auto& active = queue.workers.find(spec.worker)->active;
  for (auto at = active.begin(); at.valid(); at.next()) {
    if (at.value()->run()->request_token == spec.request_token) return true;
  }
  return false;
}

// A repeated request finds its jobs in the queue that gave them.
bool pop_again(Call& call, std::span<const Bytes> keys, const PopOptions& options) {
  const PopSpec& spec = options.spec;
  if (spec.request_token.empty() || keys.size() == 1) return false;
  for (const Bytes name : keys) {
    const KeyRef key = call.key(name);
    const Entry* entry = call.find(key);
    if (entry == nullptr || entry->type() != Type::kQueue) continue;
    if (!holds_request(entry->object<Queue>(), spec)) continue;
    return pop_from(call, key, spec, options.fields, options.answers) == Taken::kReplied;
  }
  return false;
}

// Earlier pops that wait here have turns to come (engine/keyspace/waiter.h), so a job that is here
// may be theirs. Whatever needs no new lease (an error, jobs that the worker already has, no job at
// all) is replied at once. One that stands behind them counts as asked for.
bool stands_behind_others(Call& call, const KeyRef& key, const PopSpec& spec) {
  if ((call.engine.owing_shards.load(std::memory_order_relaxed) >> key.shard & 1) == 0) {
    return false;
  }
  Shard& shard = call.engine.shard(key.shard);
  shard.mutex.assert_held();
  const QueueWaiters* waiters =
      shard.waiters.find_queue(call.client.database, std::string(key.key));
  if (waiters == nullptr || !waiters->owes_turns) return false;
  const Entry* entry = call.find(key);
  if (entry == nullptr || entry->type() != Type::kQueue) return false;
  Queue& queue = entry->object<Queue>();
  QueueWork work = queue_work(call, key, queue);
  if (holds_request(queue, spec) || choose_job(work, spec).job == nullptr) return false;
  note_request(work, spec);
  return true;
}

void wait_quietly(Call& call, const KeyRef& key, const std::shared_ptr<Waiter>& waiter) {
  const Entry* entry = call.find(key);
  CHECK(entry != nullptr && entry->type() == Type::kQueue);  // its rule has been read
  QueueWork work = queue_work(call, key, entry->object<Queue>());
  begin_quiet_wait(work, waiter);
}

void serve_blocked_pop(Call& call, Bytes name) {
  const auto& request = static_cast<const AnsweredPop&>(*call.waiter->request);
  request.begin_reply(call.reply);
  const Taken taken = pop_from(call, KeyRef(name), request.spec, request.fields, {});
  CHECK(taken == Taken::kReplied);  // it was chosen because it can be served
}

}  // namespace

bool drop_older_pop(Call& call, std::span<const Bytes> keys, const PopSpec& spec) {
  if (spec.request_token.empty()) return false;
  const std::string request = request_key(spec);
  bool dropped = false;
  for (const Bytes name : keys) {
    Shard& shard = call.engine.shard(call.key(name).shard);
    shard.mutex.assert_held();
    const std::string key(name);
    const QueueWaiters* waiters = shard.waiters.find_queue(call.client.database, key);
    if (waiters == nullptr) continue;
    const auto found = waiters->requests.find(request);
    if (found == waiters->requests.end()) continue;
    const std::shared_ptr<Waiter> older = found->second;
    shard.waiters.remove(key, older.get());
    if (older->send_nothing(call.unit)) dropped = true;
  }
  return dropped;
}

bool is_repeated_pop(const Queue* queue, const PopSpec& spec) {
  if (queue == nullptr || spec.request_token.empty()) return false;
  const Worker* worker = queue->workers.find(spec.worker);
  return worker != nullptr && worker->request_token == spec.request_token;
}

void reply_answers(Reply& reply, const Answers& answers) {
  reply.array(answers.size());
  for (const Status& answer : answers) {
    answer.ok() ? reply.ok() : reply.error(answer.message());
  }
}

void pop_or_block(Call& call, std::span<const Bytes> keys, PopOptions options) {
  const PopSpec& spec = options.spec;
  if (pop_again(call, keys, options)) return;
  std::vector<Bytes> behind_others;
  std::vector<Bytes> quiet_at;
  for (const Bytes name : keys) {
    const KeyRef key = call.key(name);
    // A pop that cannot wait for its turn takes a present job.
    if (!call.nested && stands_behind_others(call, key, spec)) {
      const auto end = behind_others.end();
      if (std::find(behind_others.begin(), end, name) == end) behind_others.push_back(name);
      continue;
    }
    const Taken taken = pop_from(call, key, spec, options.fields, options.answers);
    if (taken == Taken::kReplied) return;
    if (taken == Taken::kQuiet) quiet_at.push_back(name);
  }
  if (call.nested || (!options.blocks && behind_others.empty())) {
    begin_answered(call.reply, options.answers);
    return call.reply.null_array();
  }
  auto request = std::make_unique<AnsweredPop>();
  request->spec = std::move(options.spec);
  request->fields = options.fields;
  request->answers = std::move(options.answers);
  const std::shared_ptr<Waiter> waiter = make_pop_waiter(std::move(request), options.block_ms);
  waiter->serve = serve_blocked_pop;
  if (options.blocks) {
    call.block(keys, waiter);
    for (const Bytes name : quiet_at) wait_quietly(call, call.key(name), waiter);
    return;
  }
  waiter->queue.in_passing = true;
  waiter->queue.queues_before = behind_others.size();
  call.block(behind_others, waiter);
}

void q_pop_command(Call& call) {
  const auto count = parse_i64(call.args[1]);
  if (!count || *count <= 0) return reply_bad_field(call, "numqueues");
  if (static_cast<uint64_t>(*count) > call.args.size() - 2) {
    return call.reply.error(errors::kSyntax);
  }
  const auto keys = call.args.subspan(2, static_cast<size_t>(*count));
  PopOptions options;
  OptionReader reader(call, 2 + keys.size());
  if (!parse_pop_options(reader, options)) return;
  // An id has no meaning in another queue: the job could have ended in one and be awaited in the
  // next.
  if (options.spec.id && keys.size() != 1) return reply_bad_field(call, "id");
  drop_older_pop(call, keys, options.spec);
  pop_or_block(call, keys, std::move(options));
}

}  // namespace sluice
