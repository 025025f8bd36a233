// Q.ADD.
#include <algorithm>
#include <optional>
#include <utility>

#include "engine/commands/queue/args.h"
#include "engine/commands/queue/await.h"
#include "engine/commands/queue/queues.h"
#include "engine/work/add.h"

namespace sluice {

namespace {

void read_duplicate_mode(OptionReader& options, JobSpec& spec) {
  const Bytes mode = options.value();
  if (equals_ignore_case(mode, "ERROR")) {
    spec.if_duplicate = IfDuplicate::kError;
  } else if (equals_ignore_case(mode, "KEEP")) {
    spec.if_duplicate = IfDuplicate::kKeep;
  } else if (equals_ignore_case(mode, "UPDATE")) {
    spec.if_duplicate = IfDuplicate::kUpdate;
  } else if (equals_ignore_case(mode, "REPLACE")) {
    spec.if_duplicate = IfDuplicate::kReplace;
  } else {
    options.bad_value();
  }
}

// Adds a value of an option that may be repeated. A repeated value has no effect.
void add_once(OptionReader& options, std::optional<Bytes> value, std::vector<Bytes>& values,
              size_t limit) {
  if (!value || std::find(values.begin(), values.end(), *value) != values.end()) return;
  if (values.size() == limit) return options.bad_value();
  values.push_back(*value);
}

// The last value of a repeated tag wins.
void read_tag(OptionReader& options, JobSpec& spec) {
  const auto name = options.name(1);
  const auto value = options.name(0, kMaxNameBytes, 1);
  if (!name || !value) return;
  const auto same = std::find_if(spec.tags.begin(), spec.tags.end(),
                                 [&](const auto& tag) { return tag.first == *name; });
  if (same != spec.tags.end()) {
    same->second = *value;
    return;
  }
  if (spec.tags.size() == kMaxTags) return options.bad_value();
  spec.tags.emplace_back(*name, *value);
}

void read_backoff(OptionReader& options, JobSpec& spec) {
  const auto base = options.duration(0);
  const auto most = options.duration(1);
  if (!base || !most) return;
  if (*base > *most) return options.bad_value();
  spec.backoff_ms = {*base, *most};
}

template <class Number>
std::optional<Number> narrow(std::optional<int64_t> value) {
  if (!value) return std::nullopt;
  return static_cast<Number>(*value);
}

// Reads the options for the place and the start time of a job. Returns false for other options.
bool read_place_option(OptionReader& options, const QueueConfig& config, JobSpec& spec) {
  if (options.is("PRI", 1)) {
    spec.band = options.band(config);
  } else if (options.is("BOOST", 1)) {
    spec.boost_ms = options.integer(-kMaxDurationMs, kMaxDurationMs);
  } else if (options.is("DELAY", 1)) {
    spec.delay_ms = options.duration();
  } else if (options.is("AT", 1)) {
    spec.at_ms = options.time();
  } else if (options.is("GROUP", 1)) {
    spec.group = options.name();
  } else if (options.is("KEY", 1)) {
    add_once(options, options.name(1), spec.keys, kMaxKeysOfJob);
  } else if (options.is("COST", 1)) {
    spec.cost = narrow<uint32_t>(options.integer(1, kMaxCost));
  } else if (options.is("NEED", 1)) {
    add_once(options, options.job_id(), spec.needs, kMaxNeeds);
  } else if (options.is("AFTER", 1)) {
    add_once(options, options.job_id(), spec.afters, kMaxNeeds);
  } else {
    return false;
  }
  return true;
}

// Reads the options for the time limits and retries of a job. Returns false for other options.
bool read_run_option(OptionReader& options, JobSpec& spec) {
  if (options.is("TTL", 1)) {
    spec.ttl_ms = options.duration();
  } else if (options.is("LEASE", 1)) {
    spec.lease_ms = options.integer(kMinLeaseMs, kMaxLeaseMs);
  } else if (options.is("MAXRUN", 1)) {
    spec.max_run_ms = options.duration();
  } else if (options.is("RETRY", 1)) {
    spec.retry = narrow<uint32_t>(options.integer(0, kMaxRetries));
  } else if (options.is("BACKOFF", 2)) {
    read_backoff(options, spec);
  } else if (options.is("MAXWAIT", 1)) {
    spec.max_wait_ms = options.duration();
  } else if (options.is("IFDUP", 1)) {
    read_duplicate_mode(options, spec);
  } else if (options.is("TAG", 2)) {
    read_tag(options, spec);
  } else {
    return false;
  }
  return true;
}

// What the reply is, besides the job.
struct AddReply {
  bool brief = false;              // only the id
  std::optional<int64_t> wait_ms;  // at the job's end; 0: without limit
};

bool parse_job(Call& call, const QueueConfig& config, JobSpec& spec, AddReply& wanted) {
  spec.id = call.args[2];
  spec.payload = call.args[3];
  if (spec.id != "*" && !is_job_id(spec.id)) {
    reply_bad_field(call, "id");
    return false;
  }
  OptionReader options(call, 4);
  while (options.next()) {
    if (read_place_option(options, config, spec) || read_run_option(options, spec)) continue;
    if (options.is("BRIEF")) {
      wanted.brief = true;
    } else if (options.is("WAIT", 1)) {
      wanted.wait_ms = options.time();
    } else {
      options.unknown();
    }
  }
  if (spec.delay_ms && spec.at_ms) options.fail(errors::kSyntax);
  if (wanted.brief && wanted.wait_ms) options.fail(errors::kSyntax);
  // An id in both is needed.
  std::erase_if(spec.afters, [&](Bytes id) {
    return std::find(spec.needs.begin(), spec.needs.end(), id) != spec.needs.end();
  });
  if (spec.needs.size() + spec.afters.size() > kMaxNeeds && !options.failed()) {
    reply_bad_field(call, "after");
    return false;
  }
  return !options.failed();
}

AddedJob added_job(const Call& call, const KeyRef& key, const Queue& queue,
                   const AddOutcome& outcome) {
  const Job* job = outcome.job;
  AddedJob added{outcome.result, queue.shown_state(job), {}, {}};
  if (added.state != JobState::kPending) return added;
  const uint64_t position = queue.position(job);
  added.position = static_cast<int64_t>(position);
  const int64_t eta_ms = queue.eta_ms(job, position, {queue.queue_ms, counted_pops(call, key)});
  if (eta_ms >= 0) added.eta_ms = eta_ms;
  return added;
}

}  // namespace

void q_add_command(Call& call) {
  const KeyRef key = call.key(1);
  Found<Queue> queue = find_own_queue(call, key);
  if (queue.refused()) return;
  JobSpec spec;
  AddReply wanted;
  if (!parse_job(call, config_of(queue), spec, wanted)) return;
  const bool existed = queue != nullptr;
  if (!existed) queue = find_or_create_queue(call, key);
  const Result<AddOutcome> outcome = [&] {
    QueueWork work = queue_work(call, key, *queue);
    return add_job(work, spec);
  }();
  if (!outcome.ok()) {
    drop_new_queue(call, key, existed);
    return call.reply.error(outcome.status().message());
  }
  const Bytes id = outcome->job->id();
  if (wanted.brief) return call.reply.bulk(id);
  const AddedJob added = added_job(call, key, *queue, *outcome);
  if (!wanted.wait_ms) return reply_added(call.reply, id, added);
  AwaitedJob request;
  request.with.result = true;
  request.awaits_successor = added.result == "queued";
  request.added = added;
  if (call.nested || !can_be_awaited(call, queue, id)) {
    return reply_awaited(call, key, queue, id, request);
  }
  await_end(call, call.args[1], id, std::move(request), *wanted.wait_ms);
}

}  // namespace sluice
