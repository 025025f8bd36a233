#include "engine/commands/queue/reply.h"

#include <algorithm>
#include <string>

#include "engine/execution/engine.h"
#include "engine/reply/map_reply.h"
#include "engine/work/retry.h"
#include "engine/work/why.h"

namespace sluice {

namespace {

void put_band(MapReply& map, const Queue& queue, const Job& job) {
  map.text("pri", queue.config.band_name(job.band));
}

void put_keys(MapReply& map, const Job& job) {
  const auto& held = job.lane->keys->keys;
  map.field("keys").array(held.size());
  for (const Key* key : held) map.reply().bulk(key->name);
}

void put_tags(MapReply& map, const Job& job) {
  const JobOptions* options = job.options();
  MapReply tags(map.field("tags"), options == nullptr ? 0 : options->tags.size());
  if (options == nullptr) return;
  for (const auto& [tag, value] : options->tags) tags.text(tag, value);
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
  const int64_t allowed = retries_of(job, queue.config.values());
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

// Its place, and why it is not running.
void put_place(MapReply& map, const Queue& queue, const Job& job, JobState state,
               const ShownAt& at) {
  map.text("id", job.id());
  map.text("state", job_state_name(state));
  std::optional<int64_t> position;
  std::optional<int64_t> eta_ms;
  if (state == JobState::kPending) {
    const uint64_t place = queue.position(&job);
    position = static_cast<int64_t>(place);
    const int64_t eta = queue.eta_ms(&job, place, {at.now.queue_ms, at.pops});
    if (eta >= 0) eta_ms = eta;
  }
  map.integer_or_null("position", position);
  map.integer_or_null("eta_ms", eta_ms);
  map.text_or_null("why", why_waiting(queue, job, at.now, at.waiting_pops != 0));
  put_band(map, queue, job);
  map.text("group", job.lane->group->name);
  put_keys(map, job);
  put_tags(map, job);
  map.integer("cost", job.cost());
}

// Its times before a run, and what is left of its budgets.
void put_budgets(MapReply& map, const Queue& queue, const Job& job, JobState state,
                 const ShownAt& at) {
  map.integer("enqueued", at.now.shown_ms(job.enqueued_ms()));
  std::optional<int64_t> not_before;
  if (state == JobState::kDelayed) {
    not_before = at.now.shown_ms(queue.owned_ticket(&job)->gate_ms());
  }
  map.integer_or_null("not_before", not_before);
  const bool lives = !is_terminal(state);
  const int64_t ttl_ms = lives ? ttl_left_ms(job, state, at.now.queue_ms) : -1;
  map.integer_or_null("ttl_left_ms", ttl_ms < 0 ? std::nullopt : std::optional(ttl_ms));
  map.integer("lease_ms", lease_ms(queue, job));
  map.integer("max_run_ms", max_run_ms(queue, job));
  const JobExtras* extras = job.extras_if();
  map.integer("attempts", extras == nullptr ? 0 : extras->attempts);
  map.integer("crashes", extras == nullptr ? 0 : extras->crashes);
  map.integer_or_null("retries_left",
                      lives ? std::optional(retries_left(queue, job)) : std::nullopt);
  const JobOptions* options = job.options();
  map.texts("needs", options == nullptr ? std::span<const std::string>() : options->by_need());
  // Few jobs have it; the others' replies do not grow by it.
  if (options != nullptr && options->after_count != 0) map.texts("after", options->by_after());
}

// When the lease or the MAXRUN of the run expires, by the wall clock.
int64_t deadline_of(const JobRun& run, const Times& now) {
  return now.wall_ms + run.due_steady() - now.steady_ms;
}

void put_run(MapReply& map, const JobRun* run, const Times& now) {
  if (run == nullptr) {
    for (const Bytes name : {"lease", "worker", "deadline", "started", "cancel"}) map.null(name);
    return;
  }
  map.count("lease", run->token);
  map.text_or_null("worker", run->worker == nullptr ? Bytes() : run->worker->name);
  map.integer("deadline", deadline_of(*run, now));
  map.integer("started", now.shown_ms(run->started_ms));
  run->cancelled ? map.text("cancel", run->cancel_reason) : map.null("cancel");
}

void put_end(MapReply& map, const Job& job, const Times& now, size_t progress) {
  const JobEnd* end = job.end();
  std::optional<int64_t> finished;
  std::optional<int64_t> run_ms;
  if (end != nullptr) {
    finished = now.shown_ms(end->finished_ms);
    if (end->run_ms >= 0) run_ms = end->run_ms;
  }
  map.integer_or_null("finished", finished);
  map.integer_or_null("run_ms", run_ms);
  const JobExtras* extras = job.extras_if();
  map.text_or_null("error", extras == nullptr ? Bytes() : extras->error);
  map.text_or_null("progress",
                   extras == nullptr ? Bytes() : Bytes(extras->progress).substr(0, progress));
  map.boolean("successor", extras != nullptr && extras->successor != nullptr);
}

void put_brief(MapReply& map, const Job& job, JobState state, const ShownAt& at) {
  map.text("id", job.id());
  map.text("state", job_state_name(state));
  map.integer("enqueued", at.now.shown_ms(job.enqueued_ms()));
}

// What Q.ADD was given for this job alone, or what took its place later. Null: not given, so the
// queue's value applies. The TTL of a job without one of its own is the one that held when it was
// added, and stays so.
void put_options(MapReply& map, const Job& job) {
  static const JobOptions kNone;
  const JobOptions& given = job.options() == nullptr ? kNone : *job.options();
  const auto own = [](int64_t value) { return value < 0 ? std::nullopt : std::optional(value); };
  const JobExtras* extras = job.extras_if();
  MapReply options(map.field("options"), 6);
  options.integer("boost_ms", extras == nullptr ? 0 : extras->boost_ms);
  options.integer("ttl_ms", job.ttl_ms());
  options.integer_or_null("lease_ms", own(given.lease_ms));
  options.integer_or_null("max_run_ms", own(given.max_run_ms));
  options.integer_or_null("retry", own(given.retry));
  if (given.backoff_base_ms < 0) return options.null("backoff");
  Reply& bounds = options.field("backoff");
  bounds.array(2);
  bounds.integer(given.backoff_base_ms);
  bounds.integer(given.backoff_max_ms);
}

// The jobs that still wait for its end: the first ones of all.
void put_dependents(MapReply& map, const Queue& queue, const Job& job) {
  constexpr size_t kMostShown = 30;
  std::vector<std::string> shown;
  size_t count = 0;
  for (const Queue::Awaiting* awaiting : {&queue.dependents, &queue.followers}) {
    const auto found = awaiting->find(std::string(job.id()));
    if (found == awaiting->end()) continue;
    count += found->second.size();
    for (auto at = found->second.begin(); at.valid() && shown.size() < kMostShown; at.next()) {
      shown.emplace_back(at.value()->id());
    }
  }
  map.texts("dependents", shown);
  map.count("dependents_count", count);
}

}  // namespace

bool parse_popped_field(Bytes name, PoppedFields& fields) {
  if (equals_ignore_case(name, "tags")) return fields.tags = true;
  if (equals_ignore_case(name, "progress")) return fields.progress = true;
  if (equals_ignore_case(name, "error")) return fields.error = true;
  if (equals_ignore_case(name, "group")) return fields.group = true;
  if (equals_ignore_case(name, "need_results")) return fields.need_results = true;
  return false;
}

namespace {

// The results of the jobs that it needs or comes after, if these are kept; `left`: bytes.
void put_need_results(MapReply& map, const Queue& queue, const Job& job, size_t& left) {
  const JobOptions* options = job.options();
  const std::span<const std::string> ids =
      options == nullptr ? std::span<const std::string>() : options->needs;
  bool truncated = false;
  {
    MapReply results(map.field("need_results"), ids.size());
    for (const std::string& id : ids) {
      const Job* need = queue.find(id);
      const bool has_result = need != nullptr && need->state == JobState::kCompleted;
      const bool fits = has_result && need->end()->result.size() <= left;
      truncated = truncated || (has_result && !fits);
      if (!fits) {
        results.null(id);
        continue;
      }
      left -= need->end()->result.size();
      results.text(id, need->end()->result);
    }
  }
  map.boolean("truncated", truncated);
}

// Everything that a worker needs for most jobs, in as few bytes as possible.
void reply_brief_job(Reply& reply, Bytes queue_name, const Queue& queue, const Job& job,
                     const PoppedFields& fields, size_t& results_left) {
  const JobExtras& extras = *job.extras_if();
  const size_t asked = fields.asked();
  reply.array(asked == 0 ? 6 : 7);
  reply.bulk(queue_name);
  reply.bulk(job.id());
  reply.integer(static_cast<int64_t>(job.run()->token));
  reply.integer(extras.attempts);
  reply.bulk(job.payload());
  reply.integer(job.run()->lease_ms);
  if (asked == 0) return;
  MapReply map(reply, asked);
  if (fields.tags) put_tags(map, job);
  if (fields.progress) map.text_or_null("progress", extras.progress);
  if (fields.error) map.text_or_null("error", extras.error);
  if (fields.group) map.text("group", job.lane->group->name);
  if (fields.need_results) put_need_results(map, queue, job, results_left);
}

}  // namespace

void reply_popped_job(Reply& reply, Bytes queue_name, const Queue& queue, const Job& job,
                      const Times& now, const PoppedFields& fields, size_t& results_left) {
  if (fields.brief) return reply_brief_job(reply, queue_name, queue, job, fields, results_left);
  const JobRun& run = *job.run();
  const JobExtras& extras = *job.extras_if();
  MapReply map(reply, 15 + size_t{fields.error} + 2 * size_t{fields.need_results});
  map.text("queue", queue_name);
  map.text("id", job.id());
  map.count("lease", run.token);
  map.integer("deadline", deadline_of(run, now));
  map.integer("attempt", extras.attempts);
  map.integer("crashes", extras.crashes);
  put_band(map, queue, job);
  map.text("group", job.lane->group->name);
  put_keys(map, job);
  put_tags(map, job);
  map.integer("cost", job.cost());
  map.integer("enqueued", now.shown_ms(job.enqueued_ms()));
  map.integer("max_run_ms", max_run_ms(queue, job));
  map.text_or_null("progress", extras.progress);
  map.text("payload", job.payload());
  if (fields.error) map.text_or_null("error", extras.error);
  if (fields.need_results) put_need_results(map, queue, job, results_left);
}

bool parse_shown_field(Bytes name, ShownFields& fields) {
  if (equals_ignore_case(name, "payload")) return fields.payload = true;
  if (equals_ignore_case(name, "result")) return fields.result = true;
  if (equals_ignore_case(name, "options")) return fields.options = true;
  return false;
}

size_t waiting_pops(const Call& call, const KeyRef& key) {
  const Shard& shard = call.engine.shard(key.shard);
  shard.mutex.assert_held();
  return shard.waiters.waiting_pops(call.client.database, key.key);
}

const WaitingPops* counted_pops(const Call& call, const KeyRef& key) {
  const Shard& shard = call.engine.shard(key.shard);
  shard.mutex.assert_held();
  return shard.waiters.counted_pops(call.client.database, key.key);
}

ShownAt::ShownAt(const Queue& queue, const Times& times, ShownFields asked)
    : now(times), with(asked) {
  now.queue_ms = std::max(now.queue_ms, queue.queue_ms);
}

ShownAt::ShownAt(const Call& call, const KeyRef& key, Queue& queue, ShownFields asked)
    : ShownAt(queue, call.unit.times, asked) {
  queue.run_rates_early(queue.now(now.queue_ms));  // `why` depends on them
  waiting_pops = sluice::waiting_pops(call, key);
  pops = counted_pops(call, key);
}

size_t shown_bytes(const Job& job, ShownFields with) {
  size_t bytes = with.payload ? job.payload().size() : 0;
  const JobEnd* end = job.end();
  if (with.result && end != nullptr) bytes += end->result.size();
  const JobExtras* extras = job.extras_if();
  if (extras != nullptr) {
    bytes += std::min(extras->progress.size(), with.progress) + extras->error.size();
  }
  for (const Key* key : job.lane->keys->keys) bytes += key->name.size();
  const JobOptions* options = job.options();
  if (options == nullptr) return bytes;
  for (const std::string& need : options->needs) bytes += need.size();
  for (const auto& [tag, value] : options->tags) bytes += tag.size() + value.size();
  return bytes;
}

void reply_shown_job(Reply& reply, const Queue& queue, const Job& job, const ShownAt& at) {
  const JobState state = queue.shown_state(&job);
  MapReply map(reply);
  if (at.with.brief) {
    put_brief(map, job, state, at);
  } else {
    put_place(map, queue, job, state, at);
    put_budgets(map, queue, job, state, at);
    put_run(map, job.run(), at.now);
    put_end(map, job, at.now, at.with.progress);
  }
  if (at.with.dependents) put_dependents(map, queue, job);
  if (at.with.options) put_options(map, job);
  if (at.with.payload) map.text("payload", job.payload());
  if (!at.with.result) return;
  const JobEnd* end = job.end();
  const bool has_result = state == JobState::kCompleted && end != nullptr;
  has_result ? map.text("result", end->result) : map.null("result");
}

}  // namespace sluice
