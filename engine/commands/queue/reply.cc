#include "engine/commands/queue/reply.h"

#include <algorithm>
#include <string>

#include "engine/execution/engine.h"
#include "engine/work/queue_work.h"

namespace sluice {

namespace {

void name(Reply& reply, Bytes text) { reply.bulk(text); }

void integer_or_null(Reply& reply, Bytes field, bool known, int64_t value) {
  name(reply, field);
  known ? reply.integer(value) : reply.null();
}

void text_or_null(Reply& reply, Bytes field, Bytes value) {
  name(reply, field);
  value.empty() ? reply.null() : reply.bulk(value);
}

void band(Reply& reply, const Queue& queue, const Job& job) {
  name(reply, "pri");
  reply.bulk(queue.config.band_name(job.band));
}

void keys(Reply& reply, const Job& job) {
  const auto& held = job.lane->keys->keys;
  name(reply, "keys");
  reply.array(held.size());
  for (const Key* key : held) reply.bulk(key->name);
}

void tags(Reply& reply, const Job& job) {
  name(reply, "tags");
  const JobOptions* options = job.options();
  reply.map(options == nullptr ? 0 : options->tags.size());
  if (options == nullptr) return;
  for (const auto& [tag, value] : options->tags) {
    reply.bulk(tag);
    reply.bulk(value);
  }
}

int64_t max_run_ms(const Queue& queue, const Job& job) {
  const JobOptions* options = job.options();
  if (options != nullptr && options->max_run_ms >= 0) return options->max_run_ms;
  return queue.config.values().max_run_ms;
}

int64_t lease_ms(const Queue& queue, const Job& job) {
  if (const JobRun* run = job.run()) return run->lease_ms;
  const JobOptions* options = job.options();
  if (options != nullptr && options->lease_ms >= 0) return options->lease_ms;
  return queue.config.values().lease_ms;
}

int64_t retries_left(const Queue& queue, const Job& job) {
  const JobOptions* options = job.options();
  const int64_t allowed = options != nullptr && options->retry >= 0
                              ? options->retry
                              : static_cast<int64_t>(queue.config.values().retry);
  const JobExtras* extras = job.extras_if();
  return std::max<int64_t>(0, allowed - (extras == nullptr ? 0 : extras->retries_used));
}

// The remaining time that it may be pending; -1: it has no TTL.
int64_t ttl_left_ms(const Job& job, JobState state, int64_t now_ms) {
  const JobExtras* extras = job.extras_if();
  const bool runs = extras != nullptr && extras->ttl_due_ms != 0;
  if (runs) return std::max<int64_t>(0, extras->ttl_due_ms - now_ms);
  // A TTL that was configured later does not apply to jobs that were already pending.
  if (state == JobState::kPending) return -1;
  if (extras != nullptr && extras->ttl_left_ms >= 0) return extras->ttl_left_ms;
  return job.ttl_ms() == 0 ? -1 : job.ttl_ms();
}

// 10 fields: its place, and why it is not running.
void reply_place(Reply& reply, const Queue& queue, const Job& job, JobState state,
                 const ShownAt& at) {
  const bool pending = state == JobState::kPending;
  name(reply, "id");
  reply.bulk(job.id());
  name(reply, "state");
  reply.bulk(job_state_name(state));
  const uint64_t position = pending ? queue.position(&job) : 0;
  integer_or_null(reply, "position", pending, static_cast<int64_t>(position));
  const int64_t eta_ms =
      pending ? queue.eta_ms(&job, position, {at.now.queue_ms, at.waiting_pops}) : -1;
  integer_or_null(reply, "eta_ms", eta_ms >= 0, eta_ms);
  text_or_null(reply, "why", why_waiting(queue, job, at.now, at.waiting_pops != 0));
  band(reply, queue, job);
  name(reply, "group");
  reply.bulk(job.lane->group->name);
  keys(reply, job);
  tags(reply, job);
  name(reply, "cost");
  reply.integer(job.cost());
}

// 9 fields: its times before a run, and its remaining budgets.
void reply_budgets(Reply& reply, const Queue& queue, const Job& job, JobState state,
                   const ShownAt& at) {
  const bool lives = !is_terminal(state);
  const bool delayed = state == JobState::kDelayed;
  name(reply, "enqueued");
  reply.integer(at.now.shown_ms(job.enqueued_ms()));
  integer_or_null(reply, "not_before", delayed,
                  delayed ? at.now.shown_ms(queue.owned_ticket(&job)->gate_ms()) : 0);
  const int64_t ttl_ms = lives ? ttl_left_ms(job, state, at.now.queue_ms) : -1;
  integer_or_null(reply, "ttl_left_ms", ttl_ms >= 0, ttl_ms);
  name(reply, "lease_ms");
  reply.integer(lease_ms(queue, job));
  name(reply, "max_run_ms");
  reply.integer(max_run_ms(queue, job));
  const JobExtras* extras = job.extras_if();
  name(reply, "attempts");
  reply.integer(extras == nullptr ? 0 : extras->attempts);
  name(reply, "crashes");
  reply.integer(extras == nullptr ? 0 : extras->crashes);
  integer_or_null(reply, "retries_left", lives, retries_left(queue, job));
  name(reply, "needs");
  const JobOptions* options = job.options();
  reply.array(options == nullptr ? 0 : options->needs.size());
  if (options == nullptr) return;
  for (const std::string& need : options->needs) reply.bulk(need);
}

// When the lease or the MAXRUN of the run expires, by the wall clock.
int64_t deadline_of(const JobRun& run, const Times& now) {
  return now.wall_ms + run.due_steady() - now.steady_ms;
}

// 10 fields: its run, or the result.
void reply_run(Reply& reply, const Job& job, const ShownAt& at) {
  const JobRun* run = job.run();
  const JobEnd* end = job.end();
  const JobExtras* extras = job.extras_if();
  const bool ran = end != nullptr && end->run_ms >= 0;
  integer_or_null(reply, "lease", run != nullptr,
                  run == nullptr ? 0 : static_cast<int64_t>(run->token));
  text_or_null(reply, "worker",
               run == nullptr || run->worker == nullptr ? Bytes() : run->worker->name);
  integer_or_null(reply, "deadline", run != nullptr,
                  run == nullptr ? 0 : deadline_of(*run, at.now));
  integer_or_null(reply, "started", run != nullptr,
                  run == nullptr ? 0 : at.now.shown_ms(run->started_ms));
  name(reply, "cancel");
  run != nullptr && run->cancelled ? reply.bulk(run->cancel_reason) : reply.null();
  integer_or_null(reply, "finished", end != nullptr,
                  end == nullptr ? 0 : at.now.shown_ms(end->finished_ms));
  integer_or_null(reply, "run_ms", ran, ran ? end->run_ms : 0);
  text_or_null(reply, "error", extras == nullptr ? Bytes() : extras->error);
  text_or_null(reply, "progress", extras == nullptr ? Bytes() : extras->progress);
  name(reply, "successor");
  reply.boolean(extras != nullptr && extras->successor != nullptr);
}

void reply_brief(Reply& reply, const Job& job, JobState state, const ShownAt& at) {
  name(reply, "id");
  reply.bulk(job.id());
  name(reply, "state");
  reply.bulk(job_state_name(state));
  name(reply, "enqueued");
  reply.integer(at.now.shown_ms(job.enqueued_ms()));
}

}  // namespace

void reply_popped_job(Reply& reply, Bytes queue_name, const Queue& queue, const Job& job,
                      const Times& now) {
  const JobRun& run = *job.run();
  const JobExtras& extras = *job.extras_if();
  reply.map(15);
  name(reply, "queue");
  reply.bulk(queue_name);
  name(reply, "id");
  reply.bulk(job.id());
  name(reply, "lease");
  reply.integer(static_cast<int64_t>(run.token));
  name(reply, "deadline");
  reply.integer(deadline_of(run, now));
  name(reply, "attempt");
  reply.integer(extras.attempts);
  name(reply, "crashes");
  reply.integer(extras.crashes);
  band(reply, queue, job);
  name(reply, "group");
  reply.bulk(job.lane->group->name);
  keys(reply, job);
  tags(reply, job);
  name(reply, "cost");
  reply.integer(job.cost());
  name(reply, "enqueued");
  reply.integer(now.shown_ms(job.enqueued_ms()));
  name(reply, "max_run_ms");
  reply.integer(max_run_ms(queue, job));
  text_or_null(reply, "progress", extras.progress);
  name(reply, "payload");
  reply.bulk(job.payload());
}

bool parse_shown_field(Bytes name, ShownFields& fields) {
  if (equals_ignore_case(name, "payload")) return fields.payload = true;
  if (equals_ignore_case(name, "result")) return fields.result = true;
  return false;
}

size_t waiting_pops(const Call& call, const KeyRef& key) {
  const Shard& shard = call.engine.shard(key.shard);
  shard.mutex.assert_held();
  if (shard.waiters.no_queue_waiters()) return 0;
  const QueueWaiters* waiters =
      shard.waiters.find_queue(call.client.database, std::string(key.key));
  return waiters == nullptr ? 0 : waiters->all_pops.size();
}

ShownAt::ShownAt(const Queue& queue, const Times& times, ShownFields asked)
    : now(times), with(asked) {
  now.queue_ms = std::max(now.queue_ms, queue.queue_ms);
}

ShownAt::ShownAt(const Call& call, const KeyRef& key, const Queue& queue, ShownFields asked)
    : ShownAt(queue, call.unit.times, asked) {
  waiting_pops = sluice::waiting_pops(call, key);
}

size_t shown_bytes(const Job& job, ShownFields with) {
  size_t bytes = with.payload ? job.payload().size() : 0;
  const JobEnd* end = job.end();
  if (with.result && end != nullptr) bytes += end->result.size();
  const JobExtras* extras = job.extras_if();
  if (extras != nullptr) bytes += extras->progress.size() + extras->error.size();
  for (const Key* key : job.lane->keys->keys) bytes += key->name.size();
  const JobOptions* options = job.options();
  if (options == nullptr) return bytes;
  for (const std::string& need : options->needs) bytes += need.size();
  for (const auto& [tag, value] : options->tags) bytes += tag.size() + value.size();
  return bytes;
}

void reply_shown_job(Reply& reply, const Queue& queue, const Job& job, const ShownAt& at) {
  const JobState state = queue.shown_state(&job);
  reply.map((at.with.brief ? 3U : 29U) + (at.with.payload ? 1 : 0) + (at.with.result ? 1 : 0));
  if (at.with.brief) {
    reply_brief(reply, job, state, at);
  } else {
    reply_place(reply, queue, job, state, at);
    reply_budgets(reply, queue, job, state, at);
    reply_run(reply, job, at);
  }
  if (at.with.payload) {
    name(reply, "payload");
    reply.bulk(job.payload());
  }
  if (at.with.result) {
    const JobEnd* end = job.end();
    name(reply, "result");
    state == JobState::kCompleted&& end != nullptr ? reply.bulk(end->result) : reply.null();
  }
}

}  // namespace sluice
