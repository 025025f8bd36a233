// QueueModel: the life of a job.
#include "tests/model/queue_model.h"

#include <algorithm>
#include <array>

namespace sluice::test {

namespace {

constexpr int64_t kFront = -(int64_t{1} << 60);
constexpr std::array<const char*, 5> kBandNames = {"CRITICAL", "HIGH", "NORMAL", "LOW",
                                                   "BACKGROUND"};

// The name of a band, for its number as written by callers.
std::string band_name(int number, bool descending) {
  if (number >= 5) return std::to_string(number);
  return kBandNames[static_cast<size_t>(descending ? 4 - number : number)];
}

RespValue or_null(std::optional<int64_t> value) {
  return value.has_value() ? RespValue::of(*value) : RespValue();
}

std::optional<int64_t> option(const Words& words, size_t from, const std::string& name) {
  for (size_t i = from; i + 1 < words.size(); ++i) {
    if (words[i] == name) return std::atoll(words[i + 1].c_str());
  }
  return std::nullopt;
}

std::string text_option(const Words& words, size_t from, const std::string& name) {
  for (size_t i = from; i + 1 < words.size(); ++i) {
    if (words[i] == name) return words[i + 1];
  }
  return "";
}

bool has_word(const Words& words, size_t from, const std::string& name) {
  return std::find(words.begin() + static_cast<long>(from), words.end(), name) != words.end();
}

}  // namespace

ModelJob* QueueModel::find(const std::string& id) {
  for (ModelJob& job : jobs_) {
    if (job.id == id) return &job;
  }
  return nullptr;
}

int64_t QueueModel::count(const std::string& state) const {
  return std::count_if(jobs_.begin(), jobs_.end(),
                       [&](const ModelJob& job) { return job.state == state; });
}

int64_t QueueModel::waiting(const std::string* group) const {
  int64_t sum = 0;
  for (const ModelJob& job : jobs_) {
    if (job.waiting() && (group == nullptr || job.group == *group)) ++sum;
    if (!job.successor.has_value()) continue;
    const bool replaces = job.successor->mode == "REPLACE";
    const std::string& its = replaces ? *job.successor->group : job.group;
    if (group == nullptr || its == *group) ++sum;
  }
  return sum;
}

int64_t QueueModel::active(const std::string* group) const {
  return std::count_if(jobs_.begin(), jobs_.end(), [&](const ModelJob& job) {
    return job.active() && (group == nullptr || job.group == *group);
  });
}

// The last job of the least urgent band below this one, which is displaced.
ModelJob* QueueModel::last_below(int band) {
  ModelJob* last = nullptr;
  for (ModelJob& job : jobs_) {
    if (job.state != "pending" || job.band <= band) continue;
    if (last == nullptr || position(job) > position(*last)) last = &job;
  }
  return last;
}

RespValue QueueModel::told(const char* result, const ModelJob& job) const {
  return RespValue::map()
      .put("id", job.id)
      .put("result", std::string(result))
      .put("state", job.state)
      .put("position", or_null(position(job)));
}

// The job keeps its ticket, whose number is that of its arrival until BACK changes it.
void QueueModel::bind(ModelJob& job) {
  if (!job.bound) job.arrival = job.ticket.seq;
  job.bound = true;
}

// Its needs and its gate determine its state.
void QueueModel::begin_waiting(ModelJob& job) {
  if (!job.needs.empty() || !job.afters.empty()) {
    job.state = "blocked";
    return;
  }
  if (!due(job.ticket)) {
    job.state = "delayed";
  } else {
    const bool backlogged = std::any_of(jobs_.begin(), jobs_.end(), [&](const ModelJob& other) {
      return other.state == "pending" && other.group == job.group;
    });
    if (!backlogged) backlog_begins(job.group);
    job.state = "pending";
  }
  pair(job);
  if (job.state == "pending") start_ttl(job);
}

void QueueModel::admit(ModelJob& job, const ModelPop& spec, uint64_t token) {
  stop_ttl(job);
  bind(job);
  job.state = "active";
  tell("started", job);
  ++job.attempts;
  ++totals_["started"];
  take_tokens(job);
  ModelRun run;
  run.token = token;
  run.worker = spec.worker;
  run.request = spec.request;
  run.started_ms = queue_ms_;
  run.started_steady = clock_.now.steady_ms;
  run.term_ms = spec.lease_ms.value_or(job.options.lease_ms.value_or(number("lease_ms")));
  run.deadline_steady = clock_.now.steady_ms + run.term_ms;
  const int64_t max_run_ms = job.options.max_run_ms.value_or(number("max_run_ms"));
  if (max_run_ms != 0) run.run_deadline_steady = clock_.now.steady_ms + max_run_ms;
  run.tied = spec.tied;
  run.connection = spec.connection;
  job.run = run;
  if (!spec.request.empty()) admitted_tokens_[spec.worker] = spec.request;
  charge(job);
  pair(job);
  const auto over = [&](int64_t cap, int64_t slots) { return cap != 0 && slots > cap; };
  if (over(max_active(), used("", "")) || over(spec.cap, used("", "")) ||
      over(group_number(job.group, "max_active"), used(job.group, ""))) {
    broken_ = "a cap is passed by " + job.id;
  }
  if (token <= last_token_) broken_ = "token " + std::to_string(token) + " is not new";
  last_token_ = token;
}

// Results are too short here for any to be left out.
void QueueModel::put_need_results(const ModelJob& job, RespValue& out) const {
  std::vector<std::string> ids = job.named_needs;
  ids.insert(ids.end(), job.named_afters.begin(), job.named_afters.end());
  RespValue results = RespValue::map();
  for (const std::string& id : ids) {
    const auto need = std::find_if(jobs_.begin(), jobs_.end(),
                                   [&](const ModelJob& other) { return other.id == id; });
    const bool has_result = need != jobs_.end() && need->state == "completed";
    results.put(id, has_result ? RespValue::of(need->result) : RespValue());
  }
  out.put("need_results", results).put("truncated", std::string("f"));
}

RespValue QueueModel::popped(const ModelJob& job, const ModelPop& spec) const {
  const auto text_or_null = [](const std::string& text) {
    return text.empty() ? RespValue() : RespValue::of(text);
  };
  RespValue tags = RespValue::map();
  for (const auto& [name, value] : job.options.tags) tags.put(name, value);
  if (spec.brief) {
    std::vector<RespValue> fields{RespValue::of(name_),
                                  RespValue::of(job.id),
                                  RespValue::of(static_cast<int64_t>(job.run->token)),
                                  RespValue::of(job.attempts),
                                  RespValue::of(job.payload),
                                  RespValue::of(job.run->term_ms)};
    RespValue asked = RespValue::map();
    if (spec.with.contains("tags")) asked.put("tags", tags);
    if (spec.with.contains("progress")) asked.put("progress", text_or_null(job.progress));
    if (spec.with.contains("error")) asked.put("error", text_or_null(job.error));
    if (spec.with.contains("group")) asked.put("group", job.group);
    if (spec.with.contains("need_results")) put_need_results(job, asked);
    if (!spec.with.empty()) fields.push_back(asked);
    return RespValue::array(std::move(fields));
  }
  RespValue keys = RespValue::array();
  for (const std::string& key : job.keys) keys.items.push_back(RespValue::of(key));
  RespValue out = RespValue::map();
  if (spec.with.contains("error")) out.put("error", text_or_null(job.error));
  if (spec.with.contains("need_results")) put_need_results(job, out);
  return out.put("queue", name_)
      .put("id", job.id)
      .put("lease", static_cast<int64_t>(job.run->token))
      .put("deadline", deadline(job))
      .put("attempt", job.attempts)
      .put("crashes", job.crashes)
      .put("pri", band_name(band_of(job.band), descending()))
      .put("group", job.group)
      .put("keys", keys)
      .put("tags", tags)
      .put("cost", job.cost)
      .put("enqueued", clock_.now.shown_ms(job.enqueued_ms))
      .put("progress", text_or_null(job.progress))
      .put("payload", job.payload);
}

RespValue QueueModel::gone(const ModelPop& spec) {
  const ModelJob* job = find(*spec.id);
  if (job == nullptr) return RespValue::error("GONE id=" + *spec.id + "*");
  return job->waiting() ? RespValue() : RespValue::error(about("GONE", *job));
}

RespValue QueueModel::pop(const ModelPop& spec, const RespValue& observed) {
  tick();
  hear(spec.worker);
  RespValue out = RespValue::array();
  if (is_repeat(spec)) {
    std::map<uint64_t, RespValue> by_token;
    for (ModelJob& job : jobs_) {
      if (!job.active() || job.run->worker != spec.worker) continue;
      if (job.run->request != spec.request) continue;
      if (!job.run->cancelled) job.run->deadline_steady = clock_.now.steady_ms + job.run->term_ms;
      job.run->connection = spec.connection;
      by_token[job.run->token] = popped(job, spec);
    }
    for (const auto& [token, job] : by_token) out.items.push_back(job);
    return out;
  }
  if (!spec.request.empty()) worker_tokens_[spec.worker] = spec.request;
  if (spec.id.has_value()) {
    const RespValue error = gone(spec);
    if (error.is_error()) return error;
  }
  ModelPlace place;
  while (out.size() < spec.count) {
    ModelJob* job = choose(spec, place);
    if (job == nullptr) break;
    const size_t index = out.size();
    const RespValue seen = index < observed.size() ? observed.items[index] : RespValue();
    const int64_t lease = spec.brief && seen.size() > 2 ? std::atoll(seen.items[2].text.c_str())
                                                        : seen.number("lease");
    admit(*job, spec, static_cast<uint64_t>(lease));
    out.items.push_back(popped(*job, spec));
  }
  return out.items.empty() ? RespValue() : out;
}

// Returns an empty text if the job is active under this lease.
std::string QueueModel::check_lease(const std::string& id, const std::string& lease,
                                    ModelJob*& job) {
  tick();
  job = find(id);
  if (job == nullptr) return "NOJOB id=" + id;
  if (!job->active() || std::to_string(job->run->token) != lease) return about("STALELEASE", *job);
  return "";
}

void QueueModel::end_run(ModelJob& job, bool counts) {
  if (counts) runs_ms_.push_back(queue_ms_ - job.run->started_ms);
  if (runs_ms_.size() > 100) runs_ms_.erase(runs_ms_.begin());
  settle_charge(job);
  job.last_token = job.run->token;
  const std::string worker = job.run->worker;
  job.run.reset();
  const bool holds_others = std::any_of(jobs_.begin(), jobs_.end(), [&](const ModelJob& other) {
    return other.run.has_value() && other.run->worker == worker;
  });
  if (holds_others) return;
  admitted_tokens_.erase(worker);
  if (unheard_.erase(worker) != 0) worker_tokens_.erase(worker);
}

// A waiting payload under this id becomes the job.
bool QueueModel::succeed(ModelJob& job) {
  if (!job.successor.has_value()) return false;
  const ModelAdd next = *job.successor;
  const std::vector<std::string> named_needs = job.named_needs;
  const std::vector<std::string> named_afters = job.named_afters;
  const uint64_t acknowledged = job.state == "completed" ? job.last_token : job.acknowledged;
  job.successor.reset();
  ModelAdd spec = next;
  if (next.mode == "UPDATE") {
    spec.group = job.group;
    spec.keys = job.keys;
    spec.cost = job.cost;
    if (!spec.band.has_value()) spec.band = job.band;
    ModelJob inherited;
    inherited.options = job.options;  // its TTL too
    set_options(inherited, next);
    spec.options = inherited.options;
    spec.boost_ms = job.ticket.boost_ms;
  }
  // If the successor stays in the group, the group is never without a job, so its share stays.
  jobs_.remove_if([&](const ModelJob& old) { return old.id == next.id; });
  add_new(spec, "added");
  forget_shares();
  find(next.id)->acknowledged = acknowledged;
  ends_.push_back({next.id, "", "", false});
  if (next.mode == "UPDATE") find(next.id)->named_needs = named_needs;
  if (next.mode == "UPDATE") find(next.id)->named_afters = named_afters;
  return true;
}

void QueueModel::back(ModelJob& job, int64_t gate_ms, bool counts, const char* event) {
  tell(event, job);
  end_run(job, counts);
  if (succeed(job)) return;
  job.ticket.gate_ms = gate_ms;
  begin_waiting(job);
}

void QueueModel::finish(ModelJob& job, const std::string& state, const std::string& error,
                        bool counts) {
  const std::string id = job.id;
  tell(state, job);
  stop_ttl(job);
  if (job.run.has_value()) end_run(job, counts);
  job.state = state;
  job.error = error;
  job.finish_order = next_finish_++;
  job.finished_ms = queue_ms_;
  ++totals_[state];
  pair(job);
  ends_.push_back({id, state, state == "completed" ? job.result : "", job.successor.has_value()});
  // Jobs that need this id wait for the successor, unless the need has just been met.
  const bool goes_on = succeed(job);
  if (!goes_on || state == "completed") resolve(id, state);
  release_followers(id);
  drop_retained();
}

// The jobs that wait for the end of this one, by rank.
std::vector<std::string> QueueModel::waiting_for(const std::string& id, bool after) const {
  std::map<std::pair<int64_t, uint64_t>, std::string> by_rank;
  for (const ModelJob& job : jobs_) {
    if (job.state != "blocked" || !(after ? job.afters : job.needs).contains(id)) continue;
    by_rank[{job.ticket.rank, job.ticket.seq}] = job.id;
  }
  std::vector<std::string> out;
  for (const auto& [place, waiting] : by_rank) out.push_back(waiting);
  return out;
}

void QueueModel::release(ModelJob& job) {
  if (due(job.ticket)) tell("ready", job);
  begin_waiting(job);
}

// Jobs that come after this one continue, however it has ended.
void QueueModel::release_followers(const std::string& id) {
  for (const std::string& follower : waiting_for(id, true)) {
    ModelJob& job = *find(follower);
    job.afters.erase(id);
    if (job.needs.empty() && job.afters.empty()) release(job);
  }
}

// Jobs that need this job continue, or end with it, ordered by rank. (There are never so many that
// some have to wait for their turn: see queue_release_test.cc.)
void QueueModel::resolve(const std::string& id, const std::string& state) {
  for (const std::string& dependent : waiting_for(id, false)) {
    ModelJob* job = find(dependent);
    if (job == nullptr || job->state != "blocked") continue;
    if (state != "completed") {
      finish(*job, "cancelled", "need " + id);
    } else {
      job->needs.erase(id);
      if (job->needs.empty() && job->afters.empty()) release(*job);
    }
  }
}

void QueueModel::fail_attempt(ModelJob& job, const std::string& error, int64_t gate_ms) {
  const int64_t retry = job.options.retry.value_or(number("retry"));
  job.error = error;
  if (job.run->cancelled) {
    finish(job, "cancelled", job.run->reason);
  } else if (job.retries_used >= retry) {
    finish(job, "failed", error);
  } else {
    ++job.retries_used;
    back(job, gate_ms, true, "retrying");
  }
}

RespValue QueueModel::acknowledge(const Words& words) {
  ModelJob* job = nullptr;
  const std::string error = check_lease(words[2], words[3], job);
  if (error.empty()) {
    hear(job->run->worker);
    job->result = text_option(words, 4, "RESULT");
    finish(*job, "completed", "");
    adapt();
    return RespValue::of("OK");
  }
  const uint64_t token = std::strtoull(words[3].c_str(), nullptr, 10);
  if (job != nullptr && token != 0) {
    if (job->state == "completed" && job->last_token == token) return RespValue::of("OK");
    // This lease completed the job's predecessor.
    if (job->acknowledged == token) return RespValue::of("OK");
  }
  return RespValue::error(error);
}

RespValue QueueModel::refuse(const Words& words, const RespValue& observed) {
  ModelJob* job = nullptr;
  const std::string error = check_lease(words[2], words[3], job);
  if (!error.empty()) return RespValue::error(error);
  hear(job->run->worker);
  const std::string id = job->id;
  const bool cancelled = job->run->cancelled;
  const bool at_once = observed.field("not_before") == "null";
  give_back(*job, words, at_once ? 0 : observed.number("not_before") + clock_.now.ahead_ms);
  job = find(id);
  return RespValue::map().put("state", job != nullptr ? job->state
                                       : cancelled    ? "cancelled"
                                                      : "failed");
}

void QueueModel::give_back(ModelJob& job, const Words& words, int64_t observed_gate_ms) {
  const std::optional<int64_t> delay = option(words, 4, "DELAY");
  const int64_t gate_ms = queue_ms_ + delay.value_or(0);
  if (has_word(words, 4, "SILENT")) {
    if (job.run->cancelled) return finish(job, "cancelled", job.run->reason, false);
    --job.attempts;
    give_tokens_back(job, job.run->started_ms);
    return back(job, delay.has_value() ? gate_ms : 0, false, "returned");
  }
  if (has_word(words, 4, "FATAL")) {
    return job.run->cancelled ? finish(job, "cancelled", job.run->reason)
                              : finish(job, "failed", "");
  }
  if (!delay.has_value()) check_backoff(job, observed_gate_ms);
  fail_attempt(job, "", delay.has_value() ? gate_ms : observed_gate_ms);
}

RespValue QueueModel::touch(const Words& words, int connection) {
  hear(text_option(words, 4, "WORKER"));
  ModelJob* job = nullptr;
  const std::string error = check_lease(words[2], words[3], job);
  if (!error.empty()) return RespValue::error(error);
  hear(job->run->worker);
  const std::optional<int64_t> lease = option(words, 4, "LEASE");
  ModelRun& run = *job->run;
  run.connection = connection;
  if (!run.cancelled) {
    if (lease.has_value()) run.term_ms = *lease;
    run.deadline_steady = clock_.now.steady_ms + run.term_ms;
  }
  if (has_word(words, 4, "PROGRESS")) report_progress(*job, text_option(words, 4, "PROGRESS"));
  if (number("log_bytes") != 0) job->log += text_option(words, 4, "LOG");
  for (; static_cast<int64_t>(job->log.size()) > number("log_bytes"); ++job->log_gone) {
    job->log.erase(0, 1);
  }
  const int64_t due = std::min(run.deadline_steady, run.run_deadline_steady);
  RespValue out = RespValue::map();
  out.put("left_ms", due - clock_.now.steady_ms)
      .put("cancel", run.cancelled ? RespValue::of(run.reason) : RespValue());
  if (has_word(words, 4, "WORKER")) {
    out.put("quiet", std::string(quiet(text_option(words, 4, "WORKER")) ? "t" : "f"));
  }
  return out;
}

RespValue QueueModel::cancel(const Words& words) {
  tick();
  ModelJob* job = find(words[2]);
  if (job == nullptr || job->terminal()) return RespValue::of("gone");
  std::string reason = "cancelled";
  for (size_t i = 3; i + 1 < words.size(); ++i) {
    if (words[i] == "REASON") reason = words[i + 1];
  }
  if (job->waiting()) {
    finish(*job, "cancelled", reason);
    return RespValue::of("cancelled");
  }
  job->successor.reset();
  const std::optional<int64_t> grace = option(words, 3, "GRACE");
  if (grace.has_value() && *grace == 0) {
    finish(*job, "cancelled", reason, false);
    return RespValue::of("cancelled");
  }
  ModelRun& run = *job->run;
  run.cancelled = true;
  run.reason = reason;
  if (grace.has_value()) {
    run.deadline_steady = std::min(run.deadline_steady, clock_.now.steady_ms + *grace);
  }
  run.term_ms = std::max<int64_t>(1, run.deadline_steady - clock_.now.steady_ms);
  tell("signalled", *job);
  return RespValue::of("signalled");
}

RespValue QueueModel::move(const Words& words) {
  tick();
  ModelJob* job = find(words[2]);
  if (job == nullptr || !job->waiting()) return {};
  ModelTicket& ticket = job->ticket;
  const auto pri = option(words, 3, "PRI");
  const int band = pri.has_value() ? band_of(static_cast<int>(*pri)) : job->band;
  // Its present band, and no other option.
  if (band == job->band && words.size() <= (pri.has_value() ? 5U : 3U)) {
    return or_null(position(*job));
  }
  tell("moved", *job);
  stop_ttl(*job);
  bind(*job);
  job->band = band;
  const auto boost = option(words, 3, "BOOST");
  const auto delay = option(words, 3, "DELAY");
  const auto at = option(words, 3, "AT");
  if (boost.has_value()) ticket.boost_ms = *boost;
  if (delay.has_value() || at.has_value()) {
    ticket.gate_ms = at.has_value() ? *at + clock_.now.ahead_ms : queue_ms_ + *delay;
    ticket.release_ms = std::max(queue_ms_, ticket.gate_ms);
  }
  const bool front = has_word(words, 3, "FRONT");
  const bool to_back = has_word(words, 3, "BACK");
  if (front || to_back) {
    ticket.gate_ms = 0;
    ticket.release_ms = std::min(ticket.release_ms, queue_ms_);
  }
  if (front) {
    ticket.rank = kFront - next_front_++;
  } else if (to_back) {
    ticket.rank = queue_ms_;
    for (const ModelJob& other : jobs_) {
      const bool before = &other != job && other.band == job->band && !other.terminal();
      if (before) ticket.rank = std::max(ticket.rank, other.ticket.rank);
    }
    ticket.seq = next_seq_++;
  } else {
    ticket.rank = ticket.release_ms - ticket.boost_ms;
    ticket.seq = job->arrival;
  }
  begin_waiting(*job);
  return or_null(position(*job));
}

RespValue QueueModel::retry(const Words& words) {
  tick();
  ModelJob* job = find(words[2]);
  if (job == nullptr) return RespValue::error("NOJOB id=" + words[2]);
  if (!job->terminal()) return RespValue::of(job->state);
  ModelJob fresh;
  fresh.id = job->id;
  fresh.payload = job->payload;
  fresh.band = job->band;
  fresh.group = job->group;
  fresh.keys = job->keys;
  fresh.cost = job->cost;
  fresh.options = job->options;
  fresh.named_needs = job->named_needs;
  fresh.enqueued_ms = job->enqueued_ms;
  fresh.acknowledged = job->acknowledged;
  fresh.arrival = next_seq_++;
  fresh.ticket.seq = fresh.arrival;
  fresh.ticket.release_ms = queue_ms_;
  fresh.ticket.boost_ms = job->ticket.boost_ms;
  fresh.ticket.rank = queue_ms_ - fresh.ticket.boost_ms;
  fresh.bound = true;
  *job = fresh;
  tell("retrying", *job);
  begin_waiting(*job);
  return RespValue::of(job->state);
}

void QueueModel::forget(const std::string& id) {
  jobs_.remove_if([&](const ModelJob& job) { return job.id == id && !job.active(); });
  forget_shares();
}

RespValue QueueModel::purge(const std::string& state) {
  tick();
  int64_t purged = 0;
  jobs_.remove_if([&](const ModelJob& job) {
    const bool go = job.terminal() && job.state == state;
    if (go) tell("forgotten", job);
    purged += go ? 1 : 0;
    return go;
  });
  forget_shares();
  return RespValue::array({RespValue::of("0"), RespValue::of(purged)});
}

}  // namespace sluice::test
