#include "engine/queue/job_record.h"

#include <algorithm>
#include <cmath>

#include "engine/queue/queue.h"

namespace sluice {

namespace {

// Bits of the state's mask. They are on disk: never change them. Common ones are the low ones.
constexpr uint32_t kHasRun = 1U << 0;
constexpr uint32_t kHasEnd = 1U << 1;
constexpr uint32_t kHasAttempts = 1U << 2;
constexpr uint32_t kHasRelease = 1U << 3;
constexpr uint32_t kHasTtlDue = 1U << 4;
constexpr uint32_t kHasTtl = 1U << 5;
constexpr uint32_t kIsLifo = 1U << 6;  // its lane is LIFO
constexpr uint32_t kHasTtlLeft = 1U << 7;
constexpr uint32_t kHasGate = 1U << 8;
constexpr uint32_t kHasCrashes = 1U << 9;
constexpr uint32_t kHasRetries = 1U << 10;
constexpr uint32_t kHasBoost = 1U << 11;
constexpr uint32_t kHasArrival = 1U << 12;
constexpr uint32_t kIsBound = 1U << 13;
constexpr uint32_t kHasError = 1U << 14;
constexpr uint32_t kHasProgress = 1U << 15;
constexpr uint32_t kHasUnmet = 1U << 16;
constexpr uint32_t kHasSuccessor = 1U << 17;
constexpr uint32_t kHasAt = 1U << 18;
constexpr uint32_t kHasAcknowledged = 1U << 19;
constexpr uint32_t kHasLog = 1U << 20;
constexpr uint32_t kStateBits = (1U << 21) - 1;

constexpr uint32_t kRunWorker = 1U << 0;
constexpr uint32_t kRunRequest = 1U << 1;
constexpr uint32_t kRunLimit = 1U << 2;
constexpr uint32_t kRunCharged = 1U << 3;
constexpr uint32_t kRunCancelled = 1U << 4;

constexpr uint32_t kEndToken = 1U << 0;
constexpr uint32_t kEndRun = 1U << 1;
constexpr uint32_t kEndResult = 1U << 2;

constexpr uint32_t kOptionLease = 1U << 0;
constexpr uint32_t kOptionMaxRun = 1U << 1;
constexpr uint32_t kOptionRetry = 1U << 2;
constexpr uint32_t kOptionBackoff = 1U << 3;
constexpr uint32_t kOptionNeeds = 1U << 4;
constexpr uint32_t kOptionTags = 1U << 5;
constexpr uint32_t kOptionAfter = 1U << 6;  // some of the needs were given by AFTER

constexpr uint32_t kSuccessorReplaces = 1U << 0;
constexpr uint32_t kSuccessorBand = 1U << 1;
constexpr uint32_t kSuccessorTtl = 1U << 2;
constexpr uint32_t kSuccessorAt = 1U << 3;

constexpr uint32_t kRestGroup = 1U << 0;
constexpr uint32_t kRestKeys = 1U << 1;
constexpr uint32_t kRestEnqueued = 1U << 2;
constexpr uint32_t kRestCost = 1U << 3;
constexpr uint32_t kRestOptions = 1U << 4;

// `bit` if the condition holds, else 0.
constexpr uint32_t flag(bool there, uint32_t bit) { return there ? bit : 0; }

// --- Parts ---

void put_byte(ByteBuffer& to, unsigned byte) { to.push(static_cast<char>(byte)); }

bool take_byte(Bytes& from, uint8_t& byte) {
  if (from.empty()) return false;
  byte = static_cast<uint8_t>(from.front());
  from.remove_prefix(1);
  return true;
}

bool take_number(Bytes& from, uint64_t limit, auto& value) {
  uint64_t raw = 0;
  if (!take_varint(from, raw) || raw > limit) return false;
  value = static_cast<std::remove_reference_t<decltype(value)>>(raw);
  return true;
}

// Decodes a time that must not be negative.
bool take_time(Bytes& from, int64_t base_ms, int64_t& time_ms) {
  int64_t difference = 0;
  if (!take_signed(from, difference)) return false;
  if (difference < -kMaxRecordedTime || difference > kMaxRecordedTime) return false;
  time_ms = base_ms + difference;
  return time_ms >= 0 && time_ms <= kMaxRecordedTime;
}

// Decodes a rank, which may be negative, unlike the gate and the TTL.
bool take_rank(Bytes& from, int64_t base_ms, int64_t& rank) {
  int64_t difference = 0;
  constexpr int64_t kLimit = int64_t{1} << 62;
  if (!take_signed(from, difference) || difference < -kLimit || difference > kLimit) return false;
  rank = base_ms + difference;
  return true;
}

bool take_text(Bytes& from, std::string& text) {
  Bytes bytes;
  if (!take_bytes(from, bytes)) return false;
  text = bytes;
  return true;
}

bool take_texts(Bytes& from, std::vector<std::string>& texts) {
  uint64_t count = 0;
  // Each text takes at least one byte, so a damaged count cannot cause a large allocation.
  if (!take_number(from, from.size(), count)) return false;
  texts.resize(count);
  for (std::string& text : texts) {
    if (!take_text(from, text)) return false;
  }
  return true;
}

void put_texts(ByteBuffer& to, const std::vector<std::string>& texts) {
  put_varint(to, texts.size());
  for (const std::string& text : texts) put_bytes(to, text);
}

constexpr uint64_t kMaxNumber = static_cast<uint64_t>(kMaxRecordedTime);

// --- Options ---

bool is_default(const JobOptions& options) {
  return options.lease_ms < 0 && options.max_run_ms < 0 && options.retry < 0 &&
         options.backoff_base_ms < 0 && options.backoff_max_ms < 0 && options.needs.empty() &&
         options.tags.empty();
}

void encode_options(const JobOptions& options, ByteBuffer& out) {
  const bool backoff = options.backoff_base_ms >= 0 || options.backoff_max_ms >= 0;
  put_byte(out, flag(options.lease_ms >= 0, kOptionLease) |
                    flag(options.max_run_ms >= 0, kOptionMaxRun) |
                    flag(options.retry >= 0, kOptionRetry) | flag(backoff, kOptionBackoff) |
                    flag(!options.needs.empty(), kOptionNeeds) |
                    flag(!options.tags.empty(), kOptionTags) |
                    flag(options.after_count != 0, kOptionAfter));
  if (options.lease_ms >= 0) put_varint(out, static_cast<uint64_t>(options.lease_ms));
  if (options.max_run_ms >= 0) put_varint(out, static_cast<uint64_t>(options.max_run_ms));
  if (options.retry >= 0) put_varint(out, static_cast<uint64_t>(options.retry));
  if (backoff) {
    put_signed(out, options.backoff_base_ms);
    put_signed(out, options.backoff_max_ms);
  }
  if (!options.needs.empty()) put_texts(out, options.needs);
  if (options.after_count != 0) put_varint(out, options.after_count);
  if (options.tags.empty()) return;
  put_varint(out, options.tags.size());
  for (const auto& [name, value] : options.tags) {
    put_bytes(out, name);
    put_bytes(out, value);
  }
}

bool take_backoff(Bytes& from, int64_t& value) {
  return take_signed(from, value) && value >= -1 && value <= kMaxRecordedTime;
}

bool decode_options(Bytes& from, JobOptions& options) {
  uint8_t bits = 0;
  if (!take_byte(from, bits)) return false;
  if ((bits & kOptionLease) != 0 && !take_number(from, kMaxNumber, options.lease_ms)) return false;
  if ((bits & kOptionMaxRun) != 0 && !take_number(from, kMaxNumber, options.max_run_ms)) {
    return false;
  }
  if ((bits & kOptionRetry) != 0 && !take_number(from, INT32_MAX, options.retry)) return false;
  if ((bits & kOptionBackoff) != 0 && !(take_backoff(from, options.backoff_base_ms) &&
                                        take_backoff(from, options.backoff_max_ms))) {
    return false;
  }
  if ((bits & kOptionNeeds) != 0 && !take_texts(from, options.needs)) return false;
  if ((bits & kOptionAfter) != 0 && !take_number(from, options.needs.size(), options.after_count)) {
    return false;
  }
  if ((bits & kOptionTags) == 0) return true;
  uint64_t count = 0;
  if (!take_number(from, from.size(), count)) return false;
  for (; count != 0; --count) {
    auto& [name, value] = options.tags.emplace_back();
    if (!take_text(from, name) || !take_text(from, value)) return false;
  }
  return true;
}

// --- Run, end, successor ---

void encode_run(const JobRun& run, int64_t base_ms, ByteBuffer& out) {
  const bool limited = run.run_deadline_steady != INT64_MAX;
  put_byte(out, flag(run.worker != nullptr, kRunWorker) |
                    flag(!run.request_token.empty(), kRunRequest) | flag(limited, kRunLimit) |
                    flag(run.charged_ms != 0, kRunCharged) | flag(run.cancelled, kRunCancelled));
  put_varint(out, run.token);
  put_signed(out, run.started_ms - base_ms);
  put_varint(out, static_cast<uint64_t>(run.lease_ms));
  if (run.worker != nullptr) put_bytes(out, run.worker->name);
  if (!run.request_token.empty()) put_bytes(out, run.request_token);
  // The whole limit is recorded: after a restart the run gets all of it again, like its lease.
  if (limited) {
    put_varint(out, static_cast<uint64_t>(run.run_deadline_steady - run.started_steady));
  }
  if (run.charged_ms != 0) put_double(out, run.charged_ms);
  if (run.cancelled) put_bytes(out, run.cancel_reason);
}

bool decode_run(Bytes& from, int64_t base_ms, JobRun& run, Bytes& worker) {
  uint8_t bits = 0;
  if (!take_byte(from, bits) || !take_number(from, kMaxNumber, run.token) ||
      !take_time(from, base_ms, run.started_ms) || !take_number(from, kMaxNumber, run.lease_ms)) {
    return false;
  }
  run.deadline_steady = run.lease_ms;
  if ((bits & kRunWorker) != 0 && !take_bytes(from, worker)) return false;
  if ((bits & kRunRequest) != 0 && !take_text(from, run.request_token)) return false;
  if ((bits & kRunLimit) != 0 && !take_number(from, kMaxNumber, run.run_deadline_steady)) {
    return false;
  }
  if ((bits & kRunCharged) != 0 &&
      !(take_double(from, run.charged_ms) && std::isfinite(run.charged_ms))) {
    return false;
  }
  run.cancelled = (bits & kRunCancelled) != 0;
  return !run.cancelled || take_text(from, run.cancel_reason);
}

void encode_end(const JobEnd& end, int64_t base_ms, ByteBuffer& out) {
  put_byte(out, flag(end.last_token != 0, kEndToken) | flag(end.run_ms >= 0, kEndRun) |
                    flag(!end.result.empty(), kEndResult));
  put_signed(out, end.finished_ms - base_ms);
  put_varint(out, end.finish_order);
  if (end.last_token != 0) put_varint(out, end.last_token);
  if (end.run_ms >= 0) put_varint(out, static_cast<uint64_t>(end.run_ms));
  if (!end.result.empty()) put_bytes(out, end.result);
}

bool decode_end(Bytes& from, int64_t base_ms, JobEnd& end) {
  uint8_t bits = 0;
  if (!take_byte(from, bits) || !take_time(from, base_ms, end.finished_ms) ||
      !take_number(from, kMaxNumber, end.finish_order)) {
    return false;
  }
  if ((bits & kEndToken) != 0 && !take_number(from, kMaxNumber, end.last_token)) return false;
  if ((bits & kEndRun) != 0 && !take_number(from, kMaxNumber, end.run_ms)) return false;
  return (bits & kEndResult) == 0 || take_text(from, end.result);
}

void encode_successor(const JobSuccessor& successor, ByteBuffer& out) {
  put_byte(out, flag(successor.replaces, kSuccessorReplaces) |
                    flag(successor.band >= 0, kSuccessorBand) |
                    flag(successor.ttl_ms >= 0, kSuccessorTtl) |
                    flag(successor.at_ms != 0, kSuccessorAt));
  if (successor.band >= 0) put_byte(out, static_cast<unsigned>(successor.band));
  if (successor.ttl_ms >= 0) put_varint(out, static_cast<uint64_t>(successor.ttl_ms));
  encode_options(successor.options, out);
  put_bytes(out, successor.payload);
  if (!successor.replaces) return;
  put_bytes(out, successor.group);
  put_texts(out, successor.keys);
  put_varint(out, successor.cost);
  put_signed(out, successor.boost_ms);
  put_varint(out, static_cast<uint64_t>(successor.gate_ms));
  if (successor.at_ms != 0) put_varint(out, static_cast<uint64_t>(successor.at_ms));
}

bool decode_successor(Bytes& from, JobSuccessor& successor) {
  uint8_t bits = 0;
  uint8_t band = 0;
  if (!take_byte(from, bits)) return false;
  successor.replaces = (bits & kSuccessorReplaces) != 0;
  if ((bits & kSuccessorBand) != 0) {
    if (!take_byte(from, band)) return false;
    successor.band = band;
  }
  if ((bits & kSuccessorTtl) != 0 && !take_number(from, kMaxNumber, successor.ttl_ms)) return false;
  if (!decode_options(from, successor.options) || !take_text(from, successor.payload)) {
    return false;
  }
  if (!successor.replaces) return true;
  if (!take_text(from, successor.group) || !take_texts(from, successor.keys) ||
      !take_number(from, UINT32_MAX, successor.cost) || successor.cost == 0 ||
      !take_rank(from, 0, successor.boost_ms) ||
      !take_number(from, kMaxNumber, successor.gate_ms)) {
    return false;
  }
  return (bits & kSuccessorAt) == 0 || take_number(from, kMaxNumber, successor.at_ms);
}

// --- State ---

uint32_t state_mask(const Job& job) {
  const JobExtras* extras = job.extras_if();
  // The order of the lane is the one that was configured when the job joined it.
  const uint32_t lifo = flag(job.lane != nullptr && job.lane->lifo, kIsLifo);
  if (extras == nullptr) return lifo;
  return lifo | flag(extras->run != nullptr, kHasRun) | flag(extras->end != nullptr, kHasEnd) |
         flag(extras->attempts != 0, kHasAttempts) |
         flag(extras->release_ms != job.rank, kHasRelease) |
         flag(extras->ttl_due_ms != 0, kHasTtlDue) | flag(extras->ttl_ms >= 0, kHasTtl) |
         flag(extras->ttl_left_ms >= 0, kHasTtlLeft) | flag(extras->gate_ms != 0, kHasGate) |
         flag(extras->crashes != 0, kHasCrashes) | flag(extras->retries_used != 0, kHasRetries) |
         flag(extras->boost_ms != 0, kHasBoost) | flag(extras->arrival != 0, kHasArrival) |
         flag(extras->bound, kIsBound) | flag(!extras->error.empty(), kHasError) |
         flag(!extras->progress.empty(), kHasProgress) | flag(!extras->unmet.empty(), kHasUnmet) |
         flag(extras->successor != nullptr, kHasSuccessor) | flag(extras->at_ms != 0, kHasAt) |
         flag(extras->acknowledged != 0, kHasAcknowledged) | flag(extras->log != nullptr, kHasLog);
}

void encode_state(const Job& job, int64_t base_ms, ByteBuffer& out) {
  put_byte(out, static_cast<unsigned>(job.state));
  put_byte(out, job.band);
  put_signed(out, job.rank - base_ms);
  put_varint(out, job.seq);
  const uint32_t mask = state_mask(job);
  put_varint(out, mask);
  if (job.extras_if() == nullptr) return;
  const JobExtras& extras = *job.extras_if();
  if ((mask & kHasRun) != 0) encode_run(*extras.run, base_ms, out);
  if ((mask & kHasEnd) != 0) encode_end(*extras.end, base_ms, out);
  if ((mask & kHasAttempts) != 0) put_varint(out, extras.attempts);
  if ((mask & kHasRelease) != 0) put_signed(out, extras.release_ms - base_ms);
  if ((mask & kHasTtlDue) != 0) put_signed(out, extras.ttl_due_ms - base_ms);
  if ((mask & kHasTtl) != 0) put_varint(out, static_cast<uint64_t>(extras.ttl_ms));
  if ((mask & kHasTtlLeft) != 0) put_varint(out, static_cast<uint64_t>(extras.ttl_left_ms));
  if ((mask & kHasGate) != 0) put_signed(out, extras.gate_ms - base_ms);
  if ((mask & kHasCrashes) != 0) put_varint(out, extras.crashes);
  if ((mask & kHasRetries) != 0) put_varint(out, extras.retries_used);
  if ((mask & kHasBoost) != 0) put_signed(out, extras.boost_ms);
  if ((mask & kHasArrival) != 0) put_varint(out, extras.arrival);
  if ((mask & kHasError) != 0) put_bytes(out, extras.error);
  if ((mask & kHasProgress) != 0) put_bytes(out, extras.progress);
  if ((mask & kHasUnmet) != 0) put_texts(out, extras.unmet);
  if ((mask & kHasSuccessor) != 0) encode_successor(*extras.successor, out);
  if ((mask & kHasAt) != 0) put_varint(out, static_cast<uint64_t>(extras.at_ms));
  if ((mask & kHasAcknowledged) != 0) put_varint(out, extras.acknowledged);
}

// Each need may occur only once, because a job is listed once among the dependents of each.
bool take_unmet(Bytes& from, std::vector<std::string>& unmet) {
  if (!take_texts(from, unmet) || unmet.size() > kMaxNeeds) return false;
  std::vector<Bytes> sorted(unmet.begin(), unmet.end());
  std::sort(sorted.begin(), sorted.end());
  return std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
}

bool decode_times(Bytes& from, uint32_t mask, int64_t base_ms, JobExtras& extras) {
  if ((mask & kHasAttempts) != 0 && !take_number(from, UINT32_MAX, extras.attempts)) return false;
  if ((mask & kHasRelease) != 0 && !take_rank(from, base_ms, extras.release_ms)) return false;
  if ((mask & kHasTtlDue) != 0 && !take_time(from, base_ms, extras.ttl_due_ms)) return false;
  if ((mask & kHasTtl) != 0 && !take_number(from, kMaxNumber, extras.ttl_ms)) return false;
  if ((mask & kHasTtlLeft) != 0 && !take_number(from, kMaxNumber, extras.ttl_left_ms)) return false;
  return (mask & kHasGate) == 0 || take_time(from, base_ms, extras.gate_ms);
}

bool decode_counts(Bytes& from, uint32_t mask, JobExtras& extras) {
  if ((mask & kHasCrashes) != 0 && !take_number(from, UINT16_MAX, extras.crashes)) return false;
  if ((mask & kHasRetries) != 0 && !take_number(from, UINT16_MAX, extras.retries_used)) {
    return false;
  }
  if ((mask & kHasBoost) != 0 && !take_rank(from, 0, extras.boost_ms)) return false;
  if ((mask & kHasArrival) != 0 && !take_number(from, kMaxNumber, extras.arrival)) return false;
  extras.bound = (mask & kIsBound) != 0;
  if ((mask & kHasError) != 0 && !take_text(from, extras.error)) return false;
  if ((mask & kHasProgress) != 0 && !take_text(from, extras.progress)) return false;
  if ((mask & kHasUnmet) != 0 && !take_unmet(from, extras.unmet)) return false;
  if ((mask & kHasSuccessor) != 0) {
    extras.successor = std::make_unique<JobSuccessor>();
    if (!decode_successor(from, *extras.successor)) return false;
  }
  if ((mask & kHasAt) != 0 && !take_number(from, kMaxNumber, extras.at_ms)) return false;
  return (mask & kHasAcknowledged) == 0 || take_number(from, kMaxNumber, extras.acknowledged);
}

}  // namespace

void encode_event(const RecordedEvent& event, ByteBuffer& out) {
  put_byte(out, static_cast<unsigned>(event.type));
  if (event.type == EventType::kNone) return;
  put_varint(out, event.seq);
  put_signed(out, event.time_ms);
  put_bytes(out, event.fields);
}

bool decode_event(Bytes& from, RecordedEvent& event) {
  uint8_t type = 0;
  if (!take_byte(from, type) || type >= kEventTypes) return false;
  event.type = static_cast<EventType>(type);
  if (event.type == EventType::kNone) return true;
  return take_number(from, kMaxNumber, event.seq) && event.seq != 0 &&
         take_time(from, 0, event.time_ms) && take_bytes(from, event.fields);
}

bool decode_state(Bytes& from, int64_t base_ms, RecordedState& state) {
  uint8_t number = 0;
  uint32_t mask = 0;
  if (!take_byte(from, number) || number >= kJobStates || !take_byte(from, state.band) ||
      !take_rank(from, base_ms, state.rank) || !take_number(from, kMaxNumber, state.seq) ||
      !take_number(from, kStateBits, mask)) {
    return false;
  }
  state.state = static_cast<JobState>(number);
  state.lifo = (mask & kIsLifo) != 0;
  state.keeps_log = (mask & kHasLog) != 0;
  state.has_extras = (mask & ~kIsLifo) != 0;
  // A job has a run exactly while it is active, an end once it has ended, a successor only while it
  // is active.
  const bool active = state.state == JobState::kActive;
  if (((mask & kHasRun) != 0) != active) return false;
  if (((mask & kHasEnd) != 0) != is_terminal(state.state)) return false;
  if ((mask & kHasSuccessor) != 0 && !active) return false;
  JobExtras& extras = state.extras;
  extras.release_ms = state.rank;
  if (active) {
    extras.run = std::make_unique<JobRun>();
    if (!decode_run(from, base_ms, *extras.run, state.worker)) return false;
  }
  if (is_terminal(state.state)) {
    extras.end = std::make_unique<JobEnd>();
    if (!decode_end(from, base_ms, *extras.end)) return false;
  }
  return decode_times(from, mask, base_ms, extras) && decode_counts(from, mask, extras);
}

bool decode_rest(Bytes& from, int64_t rank, RecordedRest& rest) {
  uint8_t bits = 0;
  if (!take_byte(from, bits)) return false;
  if ((bits & kRestGroup) != 0 && !take_bytes(from, rest.group)) return false;
  if ((bits & kRestKeys) != 0) {
    uint64_t count = 0;
    if (!take_number(from, from.size(), count)) return false;
    rest.keys.resize(count);
    for (Bytes& key : rest.keys) {
      if (!take_bytes(from, key)) return false;
    }
  }
  rest.enqueued_ms = rank;
  if ((bits & kRestEnqueued) != 0 && !take_rank(from, 0, rest.enqueued_ms)) return false;
  if ((bits & kRestCost) != 0 && (!take_number(from, UINT32_MAX, rest.cost) || rest.cost == 0)) {
    return false;
  }
  if ((bits & kRestOptions) != 0) {
    rest.options = std::make_unique<JobOptions>();
    if (!decode_options(from, *rest.options)) return false;
  }
  return take_bytes(from, rest.payload) && rest.payload.size() <= UINT32_MAX;
}

void encode_job(const Job& job, const RecordedEvent& event, bool whole, ByteBuffer& out) {
  encode_event(event, out);
  const int64_t base_ms = event.type == EventType::kNone ? 0 : event.time_ms;
  encode_state(job, base_ms, out);
  if (!whole) return;
  const std::string& group = job.lane->group->name;
  const std::vector<Key*>& keys = job.lane->keys->keys;
  const JobOptions* options = job.options();
  const bool has_options = options != nullptr && !is_default(*options);
  const bool enqueued_apart = job.enqueued_ms() != job.rank;
  put_byte(out, flag(!group.empty(), kRestGroup) | flag(!keys.empty(), kRestKeys) |
                    flag(enqueued_apart, kRestEnqueued) | flag(job.cost() != 1, kRestCost) |
                    flag(has_options, kRestOptions));
  if (!group.empty()) put_bytes(out, group);
  if (!keys.empty()) {
    put_varint(out, keys.size());
    for (const Key* key : keys) put_bytes(out, key->name);
  }
  if (enqueued_apart) put_signed(out, job.enqueued_ms());
  if (job.cost() != 1) put_varint(out, job.cost());
  if (has_options) encode_options(*options, out);
  put_bytes(out, job.payload());
}

}  // namespace sluice
