// Changes of single jobs: Q.MOVE, Q.CANCEL, Q.RETRY, Q.PURGE. The forms with a selector are in
// where.cc.
#include "engine/work/steer.h"
#include "engine/commands/queue/adopted.h"
#include "engine/commands/queue/args.h"
#include "engine/commands/queue/queues.h"
#include "engine/queue/queue_error.h"
#include "engine/work/ends.h"
#include "engine/work/retry.h"

namespace sluice {

namespace {

bool is_where(const Call& call) { return call.option(2, kWhereWord); }

// The job with the id args[2], or null.
Job* find_job(const Call& call, const Queue* queue) {
  return queue == nullptr ? nullptr : queue->find(call.args[2]);
}

bool parse_move(Call& call, const QueueConfig& config, MoveSpec& spec) {
  OptionReader options(call, 3);
  while (options.next()) {
    if (options.is("PRI", 1)) {
      spec.band = options.band(config);
    } else if (options.is("FRONT")) {
      spec.front = true;
    } else if (options.is("BACK")) {
      spec.back = true;
    } else if (options.is("BOOST", 1)) {
      spec.boost_ms = options.integer(-kMaxDurationMs, kMaxDurationMs);
    } else if (options.is("DELAY", 1)) {
      spec.delay_ms = options.duration();
    } else if (options.is("AT", 1)) {
      spec.at_ms = options.time();
    } else {
      options.unknown();
    }
  }
  // FRONT and BACK end a delay, so they cannot be combined with one.
  const int places =
      (spec.front ? 1 : 0) + (spec.back ? 1 : 0) + (spec.delay_ms ? 1 : 0) + (spec.at_ms ? 1 : 0);
  if (places > 1) options.fail(errors::kSyntax);
  return !options.failed();
}

const char* outcome_name(CancelOutcome outcome) {
  switch (outcome) {
    case CancelOutcome::kCancelled:
      return "cancelled";
    case CancelOutcome::kSignalled:
      return "signalled";
    default:
      return "gone";
  }
}

}  // namespace

void q_move_command(Call& call) {
  if (!check_job_id(call, 2)) return;
  const KeyRef key = call.key(1);
  const Found<Queue> queue = find_queue(call, key);
  if (queue.refused()) return;
  Job* job = find_job(call, queue);
  MoveSpec spec;
  if (!parse_move(call, config_of(queue), spec)) return;
  if (queue != nullptr && queue->adopted != nullptr) return move_adopted(call, *queue, spec);
  if (job == nullptr) return call.reply.null();
  QueueWork work = queue_work(call, key, *queue);
  if (!move_job(work, job, spec) || queue->shown_state(job) != JobState::kPending)
    return call.reply.null();
  call.reply.integer(static_cast<int64_t>(queue->position(job)));
}

bool parse_cancel_option(OptionReader& options, CancelOptions& cancel) {
  if (options.is("REASON", 1)) {
    cancel.reason = shortened_text(options.value());
  } else if (options.is("GRACE", 1)) {
    cancel.grace_ms = options.duration();
  } else {
    return false;
  }
  return true;
}

void q_cancel_command(Call& call) {
  if (is_where(call)) return cancel_where(call);
  if (!check_job_id(call, 2)) return;
  CancelOptions cancel;
  OptionReader options(call, 3);
  while (options.next()) {
    if (!parse_cancel_option(options, cancel)) options.unknown();
  }
  if (options.failed()) return;
  const KeyRef key = call.key(1);
  const Found<Queue> queue = find_queue(call, key);
  if (queue.refused()) return;
  Job* job = find_job(call, queue);
  if (queue != nullptr && queue->adopted != nullptr) {
    return cancel_adopted(call, *queue, cancel.reason);
  }
  if (job == nullptr) return call.reply.simple("gone");
  QueueWork work = queue_work(call, key, *queue);
  call.reply.simple(outcome_name(cancel_job(work, job, cancel.reason, cancel.grace_ms)));
}

namespace {

// The job that Q.RETRY or Q.PURGE names. Null with the error replied.
Job* named_job(Call& call, const Found<Queue>& queue) {
  if (queue.refused()) return nullptr;
  Job* job = find_job(call, queue);
  if (job == nullptr) call.reply.error(QueueError("NOJOB").with("id", call.args[2]).text());
  return job;
}

bool check_one_id(Call& call) {
  if (!check_job_id(call, 2)) return false;
  if (call.args.size() == 3) return true;
  return fail(call, errors::kSyntax);
}

}  // namespace

void q_retry_command(Call& call) {
  if (is_where(call)) return retry_where(call);
  if (!check_one_id(call)) return;
  const KeyRef key = call.key(1);
  const Found<Queue> queue = find_own_queue(call, key);
  Job* job = named_job(call, queue);
  if (job == nullptr) return;
  // A job that has not ended is unchanged: repeating Q.RETRY has no further effect.
  QueueWork work = queue_work(call, key, *queue);
  retry_job(work, job);
  call.reply.simple(job_state_name(queue->shown_state(job)));
}

void q_purge_command(Call& call) {
  if (is_where(call)) return purge_where(call);
  if (!check_one_id(call)) return;
  const KeyRef key = call.key(1);
  const Found<Queue> queue = find_own_queue(call, key);
  Job* job = named_job(call, queue);
  if (job == nullptr) return;
  const JobState state = queue->shown_state(job);
  if (!is_terminal(state)) return call.reply.simple(job_state_name(state));
  QueueWork work = queue_work(call, key, *queue);
  forget_job(work, job);
  call.reply.simple("purged");
}

}  // namespace sluice
