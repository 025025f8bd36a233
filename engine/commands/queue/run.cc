// Giving back and extending runs: Q.NACK, Q.TOUCH.
#include "engine/work/run.h"
#include "engine/base/numbers.h"
#include "engine/commands/queue/pairs.h"
#include "engine/commands/queue/queues.h"
#include "engine/execution/refusal.h"
#include "engine/reply/map_reply.h"
#include "engine/work/progress.h"
#include "engine/work/retry.h"

namespace sluice {

namespace {

struct NackPair : LeasePair {
  std::optional<NackMode> mode;
  std::optional<int64_t> delay_ms;
  Bytes error_text;
};

struct TouchPair : LeasePair {
  std::optional<int64_t> lease_ms;
  std::optional<Bytes> progress;
  Bytes log;
};

struct TouchRequest {
  LeasePairs<TouchPair> pairs;
  Bytes worker;  // empty: not named
};

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

bool read_nack_option(OptionReader& options, NackPair& pair) {
  if (options.is("DELAY", 1)) {
    pair.delay_ms = options.duration();
  } else if (options.is("ERROR", 1)) {
    pair.error_text = shortened_text(options.value());
  } else {
    return read_nack_mode(options, pair.mode);
  }
  return true;
}

bool read_touch_option(OptionReader& options, TouchPair& pair, TouchRequest& touch) {
  if (options.is("LEASE", 1)) {
    pair.lease_ms = options.integer(kMinLeaseMs, kMaxLeaseMs);
  } else if (options.is("PROGRESS", 1)) {
    pair.progress = options.value();
  } else if (options.is("LOG", 1)) {
    pair.log = options.value();
  } else if (options.is("WORKER", 1)) {
    touch.worker = options.name(1).value_or(Bytes());
  } else {
    return false;
  }
  return true;
}

Result<NackOutcome> nack(QueueWork* work, const NackPair& pair) {
  if (work == nullptr) return no_job(pair.id);
  return nack_job(*work, pair.id, pair.lease, pair.mode.value_or(NackMode::kFail), pair.delay_ms,
                  pair.error_text);
}

// A job may nevertheless have the id WHERE: a lease follows it.
bool selects_jobs(const Call& call) {
  return call.option(2, "WHERE") && call.args[3] != "*" && !parse_i64(call.args[3]);
}

void reply_nack(Call& call, const Result<NackOutcome>& outcome) {
  if (!outcome.ok()) return call.reply.error(outcome.status().message());
  MapReply map(call.reply, 3);
  map.text("state", job_state_name(outcome->state));
  outcome->not_before_ms != 0
      ? map.integer("not_before", call.unit.times.shown_ms(outcome->not_before_ms))
      : map.null("not_before");
  map.integer("attempts_left", outcome->attempts_left);
}

// Bytes for which there is no room are dropped: the lease counts more.
void write_log(Call& call, QueueWork& work, Bytes id, Bytes bytes) {
  if (bytes.empty() || !refuse_growth(call.engine, kDenyOom).ok()) return;
  append_log(work, work.queue().find(id), bytes);
}

Result<TouchOutcome> touch(Call& call, QueueWork* work, const TouchPair& pair) {
  if (work == nullptr) return no_job(pair.id);
  if (pair.progress) {
    Status size = check_size(work->queue(), *pair.progress);
    if (!size.ok()) return size;
  }
  Status size = check_size(work->queue(), pair.log);
  if (!size.ok()) return size;
  Result<TouchOutcome> outcome =
      touch_job(*work, pair.id, pair.lease, pair.lease_ms,
                pair.progress ? &*pair.progress : nullptr, holder_of(call.client));
  if (outcome.ok()) write_log(call, *work, pair.id, pair.log);
  return outcome;
}

void reply_touch(Call& call, const Result<TouchOutcome>& outcome, std::optional<bool> quiet) {
  if (!outcome.ok()) return call.reply.error(outcome.status().message());
  MapReply map(call.reply, quiet ? 3 : 2);
  map.integer("left_ms", outcome->left_ms);
  outcome->cancelled ? map.text("cancel", outcome->cancel_reason) : map.null("cancel");
  if (quiet) map.boolean("quiet", *quiet);
}

// What one of several leases is answered: null, or why its job has to stop, or its error.
void reply_stop(Call& call, const Result<TouchOutcome>& outcome) {
  if (!outcome.ok()) return call.reply.error(outcome.status().message());
  outcome->cancelled ? call.reply.bulk(outcome->cancel_reason) : call.reply.null();
}

}  // namespace

void q_nack_command(Call& call) {
  if (selects_jobs(call)) return nack_where(call);
  LeasePairs<NackPair> pairs;
  if (!read_pairs(call, pairs, read_nack_option)) return;
  const KeyRef key = call.key(1);
  const Found<Queue> queue = find_own_queue(call, key);
  if (queue.refused()) return;
  std::optional<QueueWork> work = queue_work_if_any(call, key, queue);
  QueueWork* const present = work ? &*work : nullptr;
  if (pairs.several()) call.reply.array(pairs.size());
  pairs.for_each([&](const NackPair& pair) { reply_nack(call, nack(present, pair)); });
}

void q_touch_command(Call& call) {
  TouchRequest request;
  const bool parsed = read_pairs(call, request.pairs, [&](OptionReader& options, TouchPair& pair) {
    return read_touch_option(options, pair, request);
  });
  if (!parsed) return;
  const KeyRef key = call.key(1);
  const Found<Queue> queue = find_own_queue(call, key);
  if (queue.refused()) return;
  std::optional<QueueWork> work = queue_work_if_any(call, key, queue);
  QueueWork* const present = work ? &*work : nullptr;
  if (work) work->queue().hear_worker(request.worker);
  const bool quiet = work && work->queue().config.quiet(request.worker);
  if (!request.pairs.several()) {
    const Result<TouchOutcome> outcome = touch(call, present, request.pairs.first);
    return reply_touch(call, outcome, request.worker.empty() ? std::nullopt : std::optional(quiet));
  }
  call.reply.array(2);
  call.reply.boolean(quiet);
  call.reply.array(request.pairs.size());
  request.pairs.for_each(
      [&](const TouchPair& pair) { reply_stop(call, touch(call, present, pair)); });
}

}  // namespace sluice
