#include "engine/queue/queue_records.h"

#include <cmath>

#include "engine/base/limits.h"
#include "engine/base/numbers.h"
#include "engine/base/quoting.h"
#include "engine/base/varint.h"
#include "engine/queue/adopted_records.h"
#include "engine/queue/job_record.h"
#include "engine/queue/told_statistics.h"

namespace sluice {

namespace {

constexpr size_t kTotals = 7;

std::array<uint64_t*, kTotals> recorded_totals(Totals& totals) {
  return {&totals.added,   &totals.started,   &totals.completed, &totals.failed,
          &totals.expired, &totals.cancelled, &totals.reclaimed};
}

bool take_level(Bytes& from, ConfigLevel& level) {
  if (from.empty() || static_cast<uint8_t>(from.front()) > 3) return false;
  level = static_cast<ConfigLevel>(from.front());
  from.remove_prefix(1);
  return true;
}

// --- Head, configuration, shares ---

struct RecordedHead {
  uint64_t queue_ms = 0;
  uint64_t next_seq = 0;
  uint64_t next_token = 0;
  uint64_t next_finish = 0;
  uint64_t adaptive_max = 0;
  uint64_t last_event = 0;
  Totals totals;
  std::optional<uint64_t> kept_events;  // records of format 1 do not have it
};

bool decode_head(Bytes from, RecordedHead& head) {
  constexpr auto kLimit = static_cast<uint64_t>(kMaxRecordedTime);
  for (uint64_t* number : {&head.queue_ms, &head.next_seq, &head.next_token, &head.next_finish,
                           &head.adaptive_max, &head.last_event}) {
    if (!take_at_most(from, kLimit, *number)) return false;
  }
  uint64_t count = 0;
  if (!take_at_most(from, kTotals, count)) return false;
  const auto totals = recorded_totals(head.totals);
  for (size_t i = 0; i < count; ++i) {
    if (!take_varint(from, *totals[i])) return false;
  }
  if (from.empty()) return true;
  return take_at_most(from, head.last_event, head.kept_events.emplace()) && from.empty();
}

// The present log may have later events, and a later bound that retains another number of them.
void forget_events_before(EventLog& events, uint64_t seq) {
  if (events.empty() || seq <= events.oldest_seq()) return;
  const uint64_t gone = std::min(seq - events.oldest_seq(), events.count());
  events.trim({events.count() - gone, 0, 0}, 0, SIZE_MAX);
}

// Numbers that only grow are raised, never lowered: the record may be older than the state.
bool apply_head(Queue& queue, Bytes value) {
  RecordedHead head;
  if (!decode_head(value, head)) return false;
  queue.queue_ms = std::max(queue.queue_ms, static_cast<int64_t>(head.queue_ms));
  queue.next_seq = std::max(queue.next_seq, head.next_seq);
  queue.next_token = std::max(queue.next_token, head.next_token);
  queue.next_finish = std::max(queue.next_finish, head.next_finish);
  queue.events.follow(head.last_event, head.kept_events.value_or(0));
  if (head.kept_events.has_value()) {
    forget_events_before(queue.events, head.last_event + 1 - *head.kept_events);
  } else {
    queue.events.trim(queue.config.values().events, queue.queue_ms, SIZE_MAX);
  }
  Totals& totals = queue.stats.all.totals;
  const auto rejected = totals.rejected;
  totals = head.totals;
  totals.rejected = rejected;
  if (queue.adaptive_max != head.adaptive_max) {
    queue.adaptive_max = head.adaptive_max;
    queue.take_own_limits();
  }
  return true;
}

bool decode_config(Bytes from, ConfigLevel& level, Bytes& pattern,
                   std::vector<ConfigField>& fields) {
  if (!take_level(from, level) || !take_bytes(from, pattern)) return false;
  while (!from.empty()) {
    Bytes name;
    Bytes value;
    if (!take_bytes(from, name) || !take_bytes(from, value)) return false;
    fields.emplace_back(name, value);
  }
  return true;
}

std::vector<Bytes> key_names(const Lane* lane) {
  std::vector<Bytes> names;
  for (const Key* key : lane->keys->keys) names.emplace_back(key->name);
  return names;
}

// Moves an unplaced job into another lane of its band, group and keys.
void join_again(Queue& queue, Job* job, bool lifo) {
  Lane* old = job->lane;
  job->lane = queue.lanes.join(job->band, old->group->name, key_names(old), lifo, queue.queue_ms);
  queue.lanes.leave(old);
}

bool apply_config(Queue& queue, Bytes value) {
  ConfigLevel level{};
  Bytes pattern;
  std::vector<ConfigField> fields;
  if (!decode_config(value, level, pattern, fields)) return false;
  queue.take_told(queue.config.apply(level, pattern, fields));
  return true;
}

struct RecordedShare {
  ConfigLevel level{};
  double virtual_ms = 0;
  int64_t arrival_us = 0;
};

bool decode_share(Bytes from, RecordedShare& share) {
  if (!take_level(from, share.level) || !take_double(from, share.virtual_ms)) return false;
  constexpr int64_t kLimit = int64_t{1} << 62;
  if (share.level == ConfigLevel::kWorker) return false;
  return std::isfinite(share.virtual_ms) && take_signed(from, share.arrival_us) && from.empty() &&
         share.arrival_us >= -kLimit && share.arrival_us <= kLimit;
}

// A group or key that no job names has no share: it was forgotten with its last job. The tokens
// that it has taken still count.
bool apply_share(Queue& queue, Bytes name, Bytes value) {
  RecordedShare share;
  if (!decode_share(value, share)) return false;
  if (share.level == ConfigLevel::kQueue) {
    queue.limiter.arrival_us = share.arrival_us;
    queue.lanes.raise_virtual_ms(share.virtual_ms);
  } else if (share.level == ConfigLevel::kGroup) {
    Group* group = queue.lanes.find_group(name);
    if (group == nullptr) {
      queue.lanes.keep_idle_rate(share.level, name, share.arrival_us);
      queue.lanes.keep_absent_share(name, share.virtual_ms);
      return true;
    }
    group->limiter.arrival_us = share.arrival_us;
    queue.lanes.set_virtual_ms(group, share.virtual_ms, queue.queue_ms);
    queue.lanes.refresh_group(group, queue.queue_ms);
  } else if (Key* key = queue.lanes.find_key(name)) {
    key->limiter.arrival_us = share.arrival_us;
    queue.lanes.refresh_key(key, queue.queue_ms);
  } else {
    queue.lanes.keep_idle_rate(share.level, name, share.arrival_us);
  }
  return true;
}

bool decode_release(Bytes from, uint64_t& number, RecordedRelease& what) {
  uint64_t code = 0;
  if (!take_at_most(from, static_cast<uint64_t>(kMaxRecordedTime), number)) return false;
  if (number == 0 || !take_at_most(from, 3, code) || !from.empty()) return false;
  what = static_cast<RecordedRelease>(code);
  return true;
}

bool apply_release(Queue& queue, Bytes need, Bytes value) {
  uint64_t number = 0;
  RecordedRelease what{};
  if (need.empty() || need.size() > kMaxNameBytes) return false;
  if (!decode_release(value, number, what)) return false;
  if (what == RecordedRelease::kOver) {
    queue.drop_release(number, std::string(need));
  } else {
    queue.add_release(number, std::string(need), what == RecordedRelease::kEnded,
                      what != RecordedRelease::kFailed);
  }
  return true;
}

// --- Jobs ---

int64_t base_of(const RecordedEvent& event) {
  return event.type == EventType::kNone ? 0 : event.time_ms;
}

// Sets the worker of an active job. The request token of its last pop wins. `continues`: the job
// had this run before.
void join_run(Queue& queue, JobRun& run, Bytes worker, bool continues) {
  run.worker = queue.workers.join(worker);
  if (run.worker == nullptr || run.request_token.empty() || continues) return;
  for (auto at = run.worker->active.last(); at.valid() && at.minor() > run.token; at.prev()) {
    if (!at.value()->run()->request_token.empty()) return;
  }
  queue.workers.note_request(run.worker, run.request_token);
}

// Applies a state to a job that is in no index, except for fields that are not part of the state.
void set_state(Queue& queue, Job* job, RecordedState& state) {
  if (state.has_extras || job->rank != state.rank) job->extras();  // preserves enqueued_ms
  job->state = state.state;
  job->band = state.band;
  job->rank = state.rank;
  job->seq = state.seq;
  JobExtras* extras = job->extras_if();
  if (extras == nullptr) return;
  const JobRun* const run = state.extras.run.get();
  const bool continues =
      run != nullptr && extras->run != nullptr && extras->run->token == run->token;
  state.extras.cost = extras->cost;
  state.extras.enqueued_ms = extras->enqueued_ms;
  state.extras.options = std::move(extras->options);
  if (state.keeps_log) state.extras.log = std::move(extras->log);
  *extras = std::move(state.extras);
  if (extras->run != nullptr) join_run(queue, *extras->run, state.worker, continues);
}

struct RecordedLog {
  uint64_t arrival = 0;
  uint64_t kept_from = 0;
  uint64_t at = 0;
  Bytes bytes;
};

bool decode_log(Bytes from, RecordedLog& log) {
  constexpr auto kLimit = static_cast<uint64_t>(kMaxRecordedTime);
  return take_at_most(from, kLimit, log.arrival) && take_at_most(from, kLimit, log.kept_from) &&
         take_at_most(from, kLimit, log.at) && take_bytes(from, log.bytes) && from.empty() &&
         log.kept_from <= log.at + log.bytes.size();
}

// If the job has another sequence, the record is older than its state, or of another job.
bool apply_log(Queue& queue, Bytes id, Bytes value) {
  RecordedLog log;
  if (!decode_log(value, log)) return false;
  Job* job = queue.find(id);
  if (job == nullptr || job->arrival() != log.arrival) return true;
  queue.write_log(job, log.at, log.bytes, log.kept_from);
  return true;
}

void change_job(Queue& queue, Job* job, RecordedState& state) {
  queue.unplace(job);
  Worker* worker = job->run() == nullptr ? nullptr : job->run()->worker;
  const bool other_lane = job->band != state.band || job->lane->lifo != state.lifo;
  set_state(queue, job, state);
  if (other_lane) join_again(queue, job, state.lifo);
  queue.place(job);
  queue.workers.leave(worker);
}

// `old`: the job with this id, or null.
void put_job(Queue& queue, Job* old, Bytes id, uint64_t id_hash, RecordedState& state,
             RecordedRest& rest) {
  // Joins the lane first, so that a group whose only job is replaced is not forgotten.
  Lane* lane = queue.lanes.join(state.band, rest.group, rest.keys, state.lifo, queue.queue_ms);
  Worker* worker = nullptr;
  std::unique_ptr<JobLog> log;
  const bool needs_extras = state.has_extras || rest.enqueued_ms != state.rank || rest.cost != 1 ||
                            rest.options != nullptr;
  if (old != nullptr) {
    // A checkpoint that began before the job was added may hold it already.
    if (!needs_extras && old->extras_if() == nullptr && old->rank == state.rank &&
        old->lane == lane && old->payload() == rest.payload) {
      queue.lanes.leave(lane);
      return change_job(queue, old, state);
    }
    worker = old->run() == nullptr ? nullptr : old->run()->worker;
    if (state.keeps_log) log = queue.take_log(old);
    queue.erase(old);
  }
  Job* job = Job::make(id, rest.payload);
  job->rank = state.rank;
  if (needs_extras) {
    JobExtras& extras = job->extras();
    extras.cost = rest.cost;
    extras.enqueued_ms = rest.enqueued_ms;
    extras.options = std::move(rest.options);
    extras.log = std::move(log);
  }
  job->lane = lane;
  set_state(queue, job, state);
  queue.insert(job, id_hash);
  queue.workers.leave(worker);
}

bool apply_job(Queue& queue, const Effect& effect) {
  const bool whole = effect.type == EffectType::kJobPut;
  Bytes from = effect.value;
  RecordedEvent event;
  RecordedState state;
  RecordedRest rest;
  if (effect.field.empty() || effect.field.size() > kMaxNameBytes) return false;
  if (!decode_event(from, event) || !decode_state(from, base_of(event), state)) return false;
  if (whole && !decode_rest(from, state.rank, rest)) return false;
  if (!from.empty()) return false;
  const uint64_t id_hash = hash_bytes(effect.field);
  Job* job = queue.find(effect.field, id_hash);
  const bool adds = count_told_change(queue, job, event, state);
  if (whole) {
    put_job(queue, job, effect.field, id_hash, state, rest);
  } else if (job != nullptr) {
    change_job(queue, job, state);
  }
  job = adds ? queue.find(effect.field) : nullptr;
  if (job != nullptr) count_told_job(queue, *job, event);
  append_recorded_event(queue, event, effect.field);
  return true;
}

bool apply_gone(Queue& queue, const Effect& effect) {
  Bytes from = effect.value;
  RecordedEvent event;
  if (!decode_event(from, event) || !from.empty()) return false;
  if (Job* job = queue.find(effect.field)) {
    count_told_removal(queue, *job, event);
    Worker* worker = job->run() == nullptr ? nullptr : job->run()->worker;
    queue.erase(job);
    queue.workers.leave(worker);
  }
  append_recorded_event(queue, event, effect.field);
  return true;
}

// --- Kept events ---

bool apply_events(Queue& queue, Bytes from) {
  uint64_t seq = 0;
  if (!take_at_most(from, static_cast<uint64_t>(kMaxRecordedTime), seq) || seq == 0) return false;
  int64_t time_ms = 0;
  for (; !from.empty(); ++seq) {
    int64_t difference = 0;
    if (!take_signed(from, difference) || from.empty()) return false;
    if (difference < -kMaxRecordedTime || difference > kMaxRecordedTime) return false;
    time_ms += difference;
    const auto type = static_cast<uint8_t>(from.front());
    from.remove_prefix(1);
    Bytes id;
    Bytes fields;
    if (time_ms < 0 || time_ms > kMaxRecordedTime || type == 0 || type >= kEventTypes ||
        !take_bytes(from, id) || !take_bytes(from, fields)) {
      return false;
    }
    queue.events.append(seq, time_ms, static_cast<EventType>(type), id, fields);
  }
  return true;
}

}  // namespace

void append_recorded_event(Queue& queue, const RecordedEvent& event, Bytes id) {
  if (event.type == EventType::kNone) return;
  queue.events.append(event.seq, event.time_ms, event.type, id, event.fields);
}

// --- Encoding ---

void encode_head(const Queue& queue, ByteBuffer& out) {
  put_varint(out, static_cast<uint64_t>(queue.queue_ms));
  put_varint(out, queue.next_seq);
  put_varint(out, queue.next_token);
  put_varint(out, queue.next_finish);
  put_varint(out, queue.adaptive_max);
  put_varint(out, queue.events.last_seq());
  Totals totals = queue.stats.all.totals;
  put_varint(out, kTotals);
  for (const uint64_t* total : recorded_totals(totals)) put_varint(out, *total);
  put_varint(out, queue.events.count());
}

void encode_config(ConfigLevel level, Bytes pattern, std::span<const ConfigField> fields,
                   ByteBuffer& out) {
  out.push(static_cast<char>(level));
  put_bytes(out, pattern);
  for (const auto& [name, value] : fields) {
    put_bytes(out, name);
    put_bytes(out, value);
  }
}

void encode_share(ConfigLevel level, double virtual_ms, int64_t arrival_us, ByteBuffer& out) {
  out.push(static_cast<char>(level));
  put_double(out, virtual_ms);
  put_signed(out, arrival_us);
}

void encode_log(const Job& job, uint64_t at, Bytes bytes, ByteBuffer& out) {
  put_varint(out, job.arrival());
  put_varint(out, job.extras_if()->log->offset);
  put_varint(out, at);
  put_bytes(out, bytes);
}

void encode_release(uint64_t number, RecordedRelease what, ByteBuffer& out) {
  put_varint(out, number);
  out.push(static_cast<char>(what));
}

bool apply_queue_effect(Queue& queue, const Effect& effect) {
  switch (effect.type) {
    case EffectType::kQueueConfig:
      return apply_config(queue, effect.value);
    case EffectType::kQueueHead:
      return apply_head(queue, effect.value);
    case EffectType::kJobPut:
    case EffectType::kJobState:
      return apply_job(queue, effect);
    case EffectType::kJobGone:
      return apply_gone(queue, effect);
    case EffectType::kQueueShare:
      return apply_share(queue, effect.field, effect.value);
    case EffectType::kJobLog:
      return apply_log(queue, effect.field, effect.value);
    case EffectType::kQueueRelease:
      return apply_release(queue, effect.field, effect.value);
    case EffectType::kQueueEvents:
      return apply_events(queue, effect.value);
    case EffectType::kQueueAdopted:
    case EffectType::kQueueAdoption:
    case EffectType::kAdoptedMember:
      return apply_adopted_effect(queue, effect);
    default:
      return false;
  }
}

// --- For people ---

std::string describe_recorded_event(const RecordedEvent& event) {
  if (event.type == EventType::kNone) return "";
  return " event=" + std::string(event_type_name(event.type)) + "#" + std::to_string(event.seq) +
         " time=" + std::to_string(event.time_ms);
}

namespace {

std::string describe_job(const Effect& effect) {
  Bytes from = effect.value;
  RecordedEvent event;
  RecordedState state;
  if (!decode_event(from, event) || !decode_state(from, base_of(event), state)) return " damaged";
  std::string out = describe_recorded_event(event) + " " +
                    std::string(job_state_name(state.state)) +
                    " band=" + std::to_string(state.band) + " rank=" + std::to_string(state.rank) +
                    " seq=" + std::to_string(state.seq);
  const JobExtras& extras = state.extras;
  if (extras.run != nullptr) {
    out += " lease=" + std::to_string(extras.run->token) +
           " started=" + std::to_string(extras.run->started_ms);
    if (!state.worker.empty()) out += " worker=" + printable_bytes(state.worker);
  }
  if (extras.end != nullptr) out += " finished=" + std::to_string(extras.end->finished_ms);
  if (extras.attempts != 0) out += " attempts=" + std::to_string(extras.attempts);
  if (extras.gate_ms != 0) out += " gate=" + std::to_string(extras.gate_ms);
  if (!extras.error.empty()) out += " error=" + printable_bytes(extras.error);
  if (effect.type != EffectType::kJobPut) return out;
  RecordedRest rest;
  if (!decode_rest(from, state.rank, rest)) return " damaged";
  if (!rest.group.empty()) out += " group=" + printable_bytes(rest.group);
  for (const Bytes key : rest.keys) out += " key=" + printable_bytes(key);
  return out + " payload=" + printable_bytes(rest.payload);
}

std::string describe_head(Bytes value) {
  RecordedHead head;
  if (!decode_head(value, head)) return " damaged";
  std::string out = " time=" + std::to_string(head.queue_ms) +
                    " next_seq=" + std::to_string(head.next_seq) +
                    " next_token=" + std::to_string(head.next_token) +
                    " last_event=" + std::to_string(head.last_event) + " totals=";
  for (const uint64_t* total : recorded_totals(head.totals)) out += std::to_string(*total) + ",";
  out.pop_back();
  if (head.kept_events.has_value()) out += " kept=" + std::to_string(*head.kept_events);
  return out;
}

std::string describe_config(Bytes value) {
  ConfigLevel level{};
  Bytes pattern;
  std::vector<ConfigField> fields;
  if (!decode_config(value, level, pattern, fields)) return " damaged";
  std::string out = level == ConfigLevel::kQueue   ? " queue"
                    : level == ConfigLevel::kGroup ? " group " + printable_bytes(pattern)
                    : level == ConfigLevel::kKey   ? " key " + printable_bytes(pattern)
                                                   : " worker " + printable_bytes(pattern);
  for (const auto& [name, text] : fields) out += " " + name + "=" + printable_bytes(text);
  return out;
}

std::string describe_share(const Effect& effect) {
  RecordedShare share;
  if (!decode_share(effect.value, share)) return " damaged";
  return " level=" + std::to_string(static_cast<int>(share.level)) + " " +
         printable_bytes(effect.field) + " virtual_ms=" + format_double(share.virtual_ms) +
         " arrival_us=" + std::to_string(share.arrival_us);
}

std::string describe_release(Bytes value) {
  uint64_t number = 0;
  RecordedRelease what{};
  if (!decode_release(value, number, what)) return " damaged";
  const char* state = what == RecordedRelease::kOver        ? " over"
                      : what == RecordedRelease::kCompleted ? " completed"
                      : what == RecordedRelease::kEnded     ? " ended"
                                                            : " failed";
  return state + (" number=" + std::to_string(number));
}

std::string describe_log(Bytes value) {
  RecordedLog log;
  if (!decode_log(value, log)) return " damaged";
  return " seq=" + std::to_string(log.arrival) + " from=" + std::to_string(log.kept_from) +
         " at=" + std::to_string(log.at) + " " + printable_bytes(log.bytes);
}

}  // namespace

std::string describe_queue_effect(const Effect& effect) {
  const std::string at =
      " db=" + std::to_string(effect.database) + " " + printable_bytes(effect.key);
  const std::string job = at + " " + printable_bytes(effect.field);
  switch (effect.type) {
    case EffectType::kQueueConfig:
      return "queue_config" + at + describe_config(effect.value);
    case EffectType::kQueueHead:
      return "queue_head" + at + describe_head(effect.value);
    case EffectType::kJobPut:
      return "job_put" + job + describe_job(effect);
    case EffectType::kJobState:
      return "job_state" + job + describe_job(effect);
    case EffectType::kJobGone: {
      RecordedEvent event;
      Bytes from = effect.value;
      return "job_gone" + job +
             (decode_event(from, event) ? describe_recorded_event(event) : " damaged");
    }
    case EffectType::kQueueShare:
      return "queue_share" + at + describe_share(effect);
    case EffectType::kJobLog:
      return "job_log" + job + describe_log(effect.value);
    case EffectType::kQueueRelease:
      return "queue_release" + job + describe_release(effect.value);
    case EffectType::kQueueEvents:
      return "queue_events" + at + " " + std::to_string(effect.value.size()) + " bytes";
    case EffectType::kQueueAdopted:
    case EffectType::kQueueAdoption:
      return "queue_adopted" + at + describe_adopted_effect(effect);
    case EffectType::kAdoptedMember:
      return "adopted_member" + job + describe_adopted_effect(effect);
    default:
      return "unknown";
  }
}

}  // namespace sluice
