// Q.PURGE, and Q.CANCEL, Q.NACK and Q.RETRY of all selected jobs.
#include "engine/commands/queue/where.h"

#include <string>
#include <vector>

#include "engine/access/acl.h"
#include "engine/commands/queue/adopted.h"
#include "engine/commands/queue/queues.h"
#include "engine/execution/refusal.h"
#include "engine/queue/queue_error.h"
#include "engine/work/ends.h"
#include "engine/work/lease_expiry.h"
#include "engine/work/retry.h"
#include "engine/work/steer.h"

namespace sluice {

bool read_selector_option(OptionReader& options, const QueueConfig& config, Selector& selector) {
  if (options.is("STATE", 1)) {
    const auto state = parse_job_state(options.value());
    if (!state) {
      options.bad_value();
      return true;
    }
    selector.states |= state_bit(*state);
  } else if (options.is("GROUP", 1)) {
    if (const auto glob = options.glob()) selector.choose_groups(*glob);
  } else if (options.is("PRI", 1)) {
    selector.band = options.band(config);
  } else if (options.is("TAG", 2)) {
    const auto name = options.name(0, kMaxNameBytes, 0);
    const auto value = options.name(0, kMaxNameBytes, 1);
    if (name && value) selector.tag = {*name, *value};
  } else if (options.is("KEY", 1)) {
    selector.key = options.name();
  } else if (options.is("WORKER", 1)) {
    selector.worker = options.name();
  } else if (options.is("OLDER", 1)) {
    selector.older_ms = options.duration();
  } else if (options.is("SINCE", 1)) {
    selector.since_ms = options.queue_time();
  } else if (options.is("UNTIL", 1)) {
    selector.until_ms = options.queue_time();
  } else if (options.is("IDPART", 1)) {
    selector.id_part = options.name(1);
  } else if (options.is("ERROR", 1)) {
    selector.error = options.name(1);
  } else if (options.is("PATTERN", 1)) {
    selector.pattern = options.name();
  } else if (options.is("PAYLOAD", 1)) {
    selector.payload = options.name(1);
  } else if (options.is("LIMIT", 1)) {
    selector.limit = options.integer(1, kMaxPageCount).value_or(1);
  } else if (options.is("ALL")) {
    selector.all = true;
  } else {
    return false;
  }
  return true;
}

bool check_selector(Call& call, const Selector& selector) {
  if (selector.all == selector.restricts()) {
    return fail(
        call,
        "ERR syntax error, WHERE takes either ALL or at least one of STATE, GROUP, PRI, TAG, KEY, "
        "WORKER, OLDER, SINCE, UNTIL, IDPART, ERROR, PATTERN and PAYLOAD");
  }
  // How many jobs were changed would tell what is in their payloads.
  if (!selector.payload || may_also_use(call, call.args[1], kMayRead)) return true;
  return fail(call, Acl::refusal(Denial::kKey, call.command));
}

namespace {

struct WhereRequest {
  Selector selector;
  Bytes cursor = "0";
  CancelOptions cancel;
};

// The states that a command may change, and those that it selects by default.
struct Changeable {
  JobStates allowed;
  JobStates usual;
};

// Parses `Q.X queue WHERE selector [CURSOR c]`, with `cancels` also [REASON text] [GRACE ms].
// Returns false with the error replied.
bool parse_where(Call& call, const QueueConfig& config, bool cancels, WhereRequest& request) {
  if (!call.option(2, "WHERE")) return fail(call, errors::kSyntax);
  bool in_selector = true;
  OptionReader options(call, 3);
  while (options.next()) {
    if (in_selector && read_selector_option(options, config, request.selector)) continue;
    in_selector = false;
    if (options.is("CURSOR", 1)) {
      request.cursor = options.value();
    } else if (!cancels || !parse_cancel_option(options, request.cancel)) {
      options.unknown();
    }
  }
  return !options.failed() && check_selector(call, request.selector);
}

// Walks one step and changes the jobs that it finds: `change(work, job)` returns whether it did.
// The jobs are collected by id first, since every change moves jobs in the indexes that are walked,
// and may end others (needs, retention).
template <class Change>
void change_selected(Call& call, const KeyRef& key, Queue* queue, WhereRequest& request,
                     Changeable states, Change change) {
  Selector& selector = request.selector;
  selector.states = selector.states == 0 ? states.usual
                                         : static_cast<JobStates>(selector.states & states.allowed);
  JobPage page;
  int64_t changed = 0;
  if (queue != nullptr && selector.states != 0) {
    QueueWork work = queue_work(call, key, *queue);
    if (!walk_jobs(*queue, selector, JobOrder::kNone, request.cursor,
                   static_cast<size_t>(selector.limit), work.now_ms(), page)) {
      return call.reply.error("ERR invalid cursor");
    }
    std::vector<std::string> ids;
    ids.reserve(page.jobs.size());
    for (const Job* job : page.jobs) ids.emplace_back(job->id());
    for (const std::string& id : ids) {
      Job* job = queue->find(id);
      if (job == nullptr || (selector.states & state_bit(queue->shown_state(job))) == 0) continue;
      if (change(work, job)) ++changed;
    }
  }
  call.reply.array(2);
  call.reply.bulk(page.cursor);
  call.reply.integer(changed);
}

// `change(work, job, request)`.
template <class Change>
void change_where(Call& call, bool cancels, Changeable states, Change change) {
  const KeyRef key = call.key(1);
  const Found<Queue> queue = find_own_queue(call, key);
  WhereRequest request;
  if (queue.refused() || !parse_where(call, config_of(queue), cancels, request)) return;
  change_selected(call, key, queue, request, states,
                  [&](QueueWork& work, Job* job) { return change(work, job, request); });
}

}  // namespace

namespace {

// For a queue that has adopted plain Redis keys, whose jobs are their members.
void cancel_adopted_where(Call& call, Queue& queue) {
  WhereRequest request;
  if (!parse_where(call, queue.config, true, request)) return;
  // Payloads of members are keys of their own.
  if (request.selector.payload) return call.reply.error(QueueError("ADOPTED").text());
  AdoptedWork work = adopted_work(call);
  AdoptedPage page;
  if (!adopted_view(call, queue)
           .walk(request.selector, JobOrder::kNone, request.cursor,
                 static_cast<size_t>(request.selector.limit), page)) {
    return call.reply.error("ERR invalid cursor");
  }
  for (const AdoptedPlace& place : page.places) {
    if (!check_payload(call, queue, place.id, kMayWrite)) return;
  }
  int64_t changed = 0;
  for (const AdoptedPlace& place : page.places) {
    if (work.cancel(queue, place.id, request.cancel.reason)) ++changed;
  }
  call.reply.array(2);
  call.reply.bulk(page.cursor);
  call.reply.integer(changed);
}

}  // namespace

void cancel_where(Call& call) {
  const KeyRef key = call.key(1);
  const Found<Queue> queue = find_queue(call, key);
  if (queue.refused()) return;
  if (queue != nullptr && queue->adopted != nullptr) return cancel_adopted_where(call, *queue);
  change_where(call, true, {kLiveStates, kLiveStates},
               [](QueueWork& work, Job* job, const WhereRequest& request) {
                 // A holder that has already been notified is not notified again, unless the
                 // deadline changes.
                 const JobRun* run = job->run();
                 if (run != nullptr && run->cancelled && !request.cancel.grace_ms) return false;
                 return cancel_job(work, job, request.cancel.reason, request.cancel.grace_ms) !=
                        CancelOutcome::kGone;
               });
}

namespace {

// How Q.NACK ... WHERE ends runs. LOST: as if their leases had run out.
enum class RunLoss : uint8_t { kLost, kSilent, kFail };

struct LossRequest : WhereRequest {
  std::optional<RunLoss> how;
  Bytes error;
};

bool read_loss(OptionReader& options, LossRequest& request) {
  RunLoss how = RunLoss::kLost;
  if (options.is("SILENT")) {
    how = RunLoss::kSilent;
  } else if (options.is("FAIL")) {
    how = RunLoss::kFail;
  } else if (!options.is("LOST")) {
    return false;
  }
  if (request.how && *request.how != how) options.fail(errors::kSyntax);
  request.how = how;
  return true;
}

bool parse_loss(Call& call, LossRequest& request) {
  OptionReader options(call, 3);
  while (options.next()) {
    if (options.is("WORKER", 1)) {
      request.selector.worker = options.name(1);
    } else if (options.is("CURSOR", 1)) {
      request.cursor = options.value();
    } else if (options.is("ERROR", 1)) {
      request.error = shortened_text(options.value());
    } else if (!read_loss(options, request)) {
      options.unknown();
    }
  }
  if (!request.selector.worker) options.fail(errors::kSyntax);
  return !options.failed();
}

void end_lost_run(QueueWork& work, Job* job, const LossRequest& request) {
  const RunLoss how = request.how.value_or(RunLoss::kLost);
  if (how == RunLoss::kLost) {
    return lose_lease(work, job, request.error.empty() ? kLeaseLost : request.error);
  }
  const NackMode mode = how == RunLoss::kFail ? NackMode::kFail : NackMode::kSilent;
  nack_run(work, job, mode, std::nullopt, request.error);
}

}  // namespace

void nack_where(Call& call) {
  const KeyRef key = call.key(1);
  const Found<Queue> queue = find_own_queue(call, key);
  LossRequest request;
  if (queue.refused() || !parse_loss(call, request)) return;
  const JobStates active = state_bit(JobState::kActive);
  change_selected(call, key, queue, request, {active, active}, [&](QueueWork& work, Job* job) {
    end_lost_run(work, job, request);
    return true;
  });
}

void retry_where(Call& call) {
  change_where(call, false, {kTerminalStates, state_bit(JobState::kFailed)},
               [](QueueWork& work, Job* job, const WhereRequest&) { return retry_job(work, job); });
}

void purge_where(Call& call) {
  change_where(call, false, {kTerminalStates, kTerminalStates},
               [](QueueWork& work, Job* job, const WhereRequest&) {
                 forget_job(work, job);
                 return true;
               });
}

}  // namespace sluice
