// Ending and extending runs: Q.ACK, Q.NACK, Q.TOUCH.
#include "engine/work/run.h"

#include "engine/commands/queue/args.h"
#include "engine/commands/queue/pop.h"
#include "engine/commands/queue/queues.h"
#include "engine/execution/refusal.h"
#include "engine/queue/queue_error.h"
#include "engine/reply/map_reply.h"
#include "engine/work/progress.h"
#include "engine/work/retry.h"

namespace sluice {

namespace {

void reply_no_job(Call& call, Bytes id) {
  call.reply.error(QueueError("NOJOB").with("id", id).text());
}

// Results of workers have the same size limit as payloads. Returns false with the error replied.
bool check_size(Call& call, const Queue& queue, Bytes bytes) {
  const uint64_t limit = queue.config.values().max_payload;
  if (limit == 0 || bytes.size() <= limit) return true;
  call.reply.error(QueueError("TOOBIG").with("limit", limit).text());
  return false;
}

struct AckOptions {
  std::optional<Bytes> result;
  bool pops = false;
  PopOptions pop;
};

bool parse_ack_options(Call& call, AckOptions& ack) {
  OptionReader options(call, 4);
  while (options.next()) {
    if (options.is("RESULT", 1)) {
      ack.result = options.value();
    } else if (options.is("POP")) {
      ack.pops = true;
      return parse_pop_options(call, options.position() + 1, ack.pop);
    } else {
      options.unknown();
    }
  }
  return !options.failed();
}

Status acknowledge(Call& call, const KeyRef& key, Queue* queue, uint64_t lease,
                   const AckOptions& ack) {
  if (queue == nullptr) return QueueError("NOJOB").with("id", call.args[2]).status();
  QueueWork work = queue_work(call, key, *queue);
  return acknowledge_job(work, call.args[2], lease, ack.result.value_or(Bytes()));
}

bool read_nack_mode(OptionReader& options, std::optional<NackMode>& mode) {
  NackMode given = NackMode::kFail;
  if (options.is("SILENT")) {
    given = NackMode::kSilent;
  } else if (options.is("FATAL")) {
    given = NackMode::kFatal;
  } else if (!options.is("FAIL")) {
    return false;
  }
  if (mode && *mode != given) options.fail(errors::kSyntax);
  mode = given;
  return true;
}

void reply_nack(Call& call, const NackOutcome& outcome) {
  MapReply map(call.reply, 3);
  map.text("state", job_state_name(outcome.state));
  outcome.not_before_ms != 0
      ? map.integer("not_before", call.unit.times.shown_ms(outcome.not_before_ms))
      : map.null("not_before");
  map.integer("attempts_left", outcome.attempts_left);
}

// Bytes for which there is no room are dropped: the lease counts more.
void write_log(Call& call, QueueWork& work, Bytes id, Bytes bytes) {
  if (bytes.empty() || !refuse_growth(call.engine, kDenyOom).empty()) return;
  append_log(work, work.queue().find(id), bytes);
}

}  // namespace

void q_ack_command(Call& call) {
  uint64_t lease = 0;
  AckOptions ack;
  if (!check_job_id(call, 2) || !parse_lease(call, 3, lease) || !parse_ack_options(call, ack)) {
    return;
  }
  const KeyRef key = call.key(1);
  const Found<Queue> queue = find_own_queue(call, key);
  if (queue.refused()) return;
  if (queue != nullptr && ack.result && !check_size(call, *queue, *ack.result)) return;
  const auto keys = call.args.subspan(1, 1);
  // The reply to the same request may have been lost: then the job is already acknowledged, and the
  // worker still holds the popped jobs.
  const bool repeated = ack.pops && (drop_older_pop(call, keys, ack.pop.spec) ||
                                     is_repeated_pop(queue, ack.pop.spec));
  // In that case `*` may mean another run by now; a lease still means the run that has ended.
  const bool is_done = repeated && lease == 0;
  const Status status = is_done ? Status() : acknowledge(call, key, queue, lease, ack);
  if (!status.ok() && !repeated) return call.reply.error(status.message());
  ack.pops ? pop_or_block(call, keys, ack.pop) : call.reply.ok();
}

void q_nack_command(Call& call) {
  uint64_t lease = 0;
  if (!check_job_id(call, 2) || !parse_lease(call, 3, lease)) return;
  std::optional<NackMode> mode;
  std::optional<int64_t> delay_ms;
  Bytes error_text;
  OptionReader options(call, 4);
  while (options.next()) {
    if (options.is("DELAY", 1)) {
      delay_ms = options.duration();
    } else if (options.is("ERROR", 1)) {
      error_text = shortened_text(options.value());
    } else if (!read_nack_mode(options, mode)) {
      options.unknown();
    }
  }
  if (options.failed()) return;
  const KeyRef key = call.key(1);
  const Found<Queue> queue = find_own_queue(call, key);
  if (queue.refused()) return;
  if (queue == nullptr) return reply_no_job(call, call.args[2]);
  QueueWork work = queue_work(call, key, *queue);
  const Result<NackOutcome> outcome =
      nack_job(work, call.args[2], lease, mode.value_or(NackMode::kFail), delay_ms, error_text);
  if (!outcome.ok()) return call.reply.error(outcome.status().message());
  reply_nack(call, *outcome);
}

void q_touch_command(Call& call) {
  uint64_t lease = 0;
  if (!check_job_id(call, 2) || !parse_lease(call, 3, lease)) return;
  std::optional<int64_t> lease_ms;
  std::optional<Bytes> progress;
  Bytes log;
  OptionReader options(call, 4);
  while (options.next()) {
    if (options.is("LEASE", 1)) {
      lease_ms = options.integer(kMinLeaseMs, kMaxLeaseMs);
    } else if (options.is("PROGRESS", 1)) {
      progress = options.value();
    } else if (options.is("LOG", 1)) {
      log = options.value();
    } else {
      options.unknown();
    }
  }
  if (options.failed()) return;
  const KeyRef key = call.key(1);
  const Found<Queue> queue = find_own_queue(call, key);
  if (queue.refused()) return;
  if (queue == nullptr) return reply_no_job(call, call.args[2]);
  if (progress && !check_size(call, *queue, *progress)) return;
  if (!check_size(call, *queue, log)) return;
  QueueWork work = queue_work(call, key, *queue);
  const Result<TouchOutcome> outcome = touch_job(
      work, call.args[2], lease, lease_ms, progress ? &*progress : nullptr, holder_of(call.client));
  if (!outcome.ok()) return call.reply.error(outcome.status().message());
  write_log(call, work, call.args[2], log);
  MapReply map(call.reply, 2);
  map.integer("left_ms", outcome->left_ms);
  outcome->cancelled ? map.text("cancel", outcome->cancel_reason) : map.null("cancel");
}

}  // namespace sluice
