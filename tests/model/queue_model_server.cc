// QueueModel's timers and replies to queries; ModelServer: commands of several connections, and
// their waiting.
#include <algorithm>
#include <set>

#include "tests/model/queue_model.h"

namespace sluice::test {

namespace {

size_t retained_bytes(const ModelJob& job) {
  size_t bytes = job.id.size() + job.payload.size() + job.result.size() + job.progress.size() +
                 job.error.size() + job.group.size() + job.log.size();
  for (const std::string& key : job.keys) bytes += key.size();
  for (const std::string& need : job.named_needs) bytes += need.size();
  for (const auto& [name, value] : job.options.tags) bytes += name.size() + value.size();
  return bytes;
}

// As Q.ADD … WAIT shows it: without the two fields that it does not ask for.
RespValue awaited(RespValue job) {
  const auto at = std::find_if(job.items.begin(), job.items.end(),
                               [](const RespValue& item) { return item.text == "options"; });
  job.items.erase(at, at + 4);
  return job;
}

// But BOOST, which goes with the rank.
RespValue told_options(const ModelOptions& given) {
  const auto own = [](const std::optional<int64_t>& value) {
    return value.has_value() ? RespValue::of(*value) : RespValue();
  };
  const auto backoff = [&] {
    return RespValue::array(
        {RespValue::of(given.backoff_ms->first), RespValue::of(given.backoff_ms->second)});
  };
  return RespValue::map()
      .put("ttl_ms", given.ttl_ms.value_or(0))
      .put("lease_ms", own(given.lease_ms))
      .put("max_run_ms", own(given.max_run_ms))
      .put("retry", own(given.retry))
      .put("backoff", given.backoff_ms.has_value() ? backoff() : RespValue());
}

}  // namespace

void QueueModel::check_backoff(const ModelJob& job, int64_t gate_ms) {
  if (job.successor.has_value()) return;  // its delay is shown
  const auto [base_ms, max_ms] =
      job.options.backoff_ms.value_or(std::pair(numbers("backoff")[0], numbers("backoff")[1]));
  const int64_t most = std::min(max_ms, base_ms << std::min<int64_t>(job.retries_used, 20));
  if (gate_ms != 0 && (gate_ms < queue_ms_ || gate_ms > queue_ms_ + most)) {
    broken_ = "a backoff of " + std::to_string(gate_ms - queue_ms_) + " ms";
  }
}

void QueueModel::lose_lease(ModelJob& job) {
  if (job.run->run_deadline_steady <= clock_.now.steady_ms) {
    const int64_t gate_ms = clock_.observed_gate(name_, job.id);
    check_backoff(job, gate_ms);
    fail_attempt(job, "max_run", gate_ms);
  } else if (job.run->cancelled) {
    finish(job, "cancelled", job.run->reason, false);
  } else if (++job.crashes > number("crash_limit")) {
    finish(job, "failed", "lease lost", false);
  } else {
    ++totals_["reclaimed"];
    back(job, 0, false, "reclaimed");
  }
}

RespValue QueueModel::lose_worker(const std::string& worker, const std::string& how) {
  tick();
  std::map<uint64_t, std::string> runs;
  for (const ModelJob& job : jobs_) {
    if (job.active() && job.run->worker == worker) runs[job.run->token] = job.id;
  }
  for (const auto& [token, id] : runs) {
    ModelJob& job = *find(id);
    if (how == "LOST") {
      lose_lease(job);
    } else {
      give_back(job, {"Q.NACK", name_, id, std::to_string(token), how},
                clock_.observed_gate(name_, id));
    }
  }
  const RespValue count = RespValue::of(static_cast<int64_t>(runs.size()));
  return RespValue::array({RespValue::of("0"), count});
}

void QueueModel::drop_retained() {
  const auto drop = [&](const char* field, const char* first, const char* second) {
    const std::vector<int64_t> bounds = numbers(field);
    std::vector<const ModelJob*> ended;
    for (const ModelJob& job : jobs_) {
      if (job.state == first || job.state == second) ended.push_back(&job);
    }
    std::sort(ended.begin(), ended.end(), [](const ModelJob* a, const ModelJob* b) {
      return a->finish_order < b->finish_order;
    });
    size_t bytes = 0;
    for (const ModelJob* job : ended) bytes += retained_bytes(*job);
    std::set<std::string> gone;
    for (size_t i = 0; i < ended.size(); ++i) {
      const bool too_many = ended.size() - i > static_cast<size_t>(bounds[0]);
      const bool too_old = bounds[1] != 0 && ended[i]->finished_ms + bounds[1] <= queue_ms_;
      const bool too_large = bounds[2] != 0 && bytes > static_cast<size_t>(bounds[2]);
      if (!too_many && !too_old && !too_large) break;
      gone.insert(ended[i]->id);
      bytes -= retained_bytes(*ended[i]);
    }
    for (const std::string& id : gone) forget(id);
  };
  drop("retain_completed", "completed", "cancelled");
  drop("retain_failed", "failed", "expired");
}

void QueueModel::connection_lost(int connection) {
  const int64_t latest = clock_.now.steady_ms + number("disconnect_grace_ms");
  for (ModelJob& job : jobs_) {
    if (!job.active() || !job.run->tied || job.run->connection != connection) continue;
    job.run->connection = -1;
    job.run->deadline_steady = std::min(job.run->deadline_steady, latest);
  }
}

void QueueModel::run_timers() {
  tick();
  const auto next = [&](auto is_due, auto key) -> ModelJob* {
    ModelJob* first = nullptr;
    for (ModelJob& job : jobs_) {
      if (is_due(job) && (first == nullptr || key(job) < key(*first))) first = &job;
    }
    return first;
  };
  const auto due_steady = [](const ModelJob& job) {
    return std::pair(std::min(job.run->deadline_steady, job.run->run_deadline_steady),
                     job.run->token);
  };
  const auto lost = [&](const ModelJob& job) {
    return job.active() && due_steady(job).first <= clock_.now.steady_ms;
  };
  while (ModelJob* job = next(lost, due_steady)) lose_lease(*job);
  const auto delayed = [&](const ModelJob& job) {
    return job.state == "delayed" && due(job.ticket);
  };
  const auto gate = [](const ModelJob& job) { return std::pair(job.ticket.gate_ms, job.arrival); };
  for (const ModelJob& job : jobs_) {
    if (delayed(job)) tell("ready", job);
  }
  while (ModelJob* job = next(delayed, gate)) begin_waiting(*job);
  const auto expired = [&](const ModelJob& job) {
    return job.state == "pending" && job.ttl_due_ms != 0 && job.ttl_due_ms <= queue_ms_;
  };
  const auto expiry = [](const ModelJob& job) { return std::pair(job.ttl_due_ms, job.arrival); };
  while (ModelJob* job = next(expired, expiry)) finish(*job, "expired", "ttl");
  continue_progress();
  drop_retained();
}

std::pair<int64_t, int64_t> QueueModel::next_due() const {
  std::pair<int64_t, int64_t> due{INT64_MAX, INT64_MAX};
  for (const ModelJob& job : jobs_) {
    if (job.state == "delayed") due.first = std::min(due.first, job.ticket.gate_ms);
    if (job.state == "pending" && job.ttl_due_ms != 0) {
      due.first = std::min(due.first, job.ttl_due_ms);
    }
    if (job.active()) {
      due.second = std::min({due.second, job.run->deadline_steady, job.run->run_deadline_steady});
    }
  }
  for (const auto& [id, pace] : pace_) due.first = std::min(due.first, pace.due_ms);
  return due;
}

void QueueModel::restart() {
  for (ModelJob& job : jobs_) {
    if (!job.active()) continue;
    ModelRun& run = *job.run;
    const int64_t max_run_ms = job.options.max_run_ms.value_or(number("max_run_ms"));
    run.started_steady = clock_.now.steady_ms;
    run.tied = false;  // every connection is lost with the process, but no lease
    run.deadline_steady = clock_.now.steady_ms + run.term_ms;
    if (max_run_ms != 0) run.run_deadline_steady = clock_.now.steady_ms + max_run_ms;
    unheard_.insert(run.worker);
  }
  pace_.clear();
  worker_tokens_ = admitted_tokens_;
  taken_.clear();
  runs_ms_.clear();
  completions_ = 0;
}

bool QueueModel::is_repeat(const ModelPop& spec) const {
  return is_repeated_request(spec) &&
         std::any_of(jobs_.begin(), jobs_.end(), [&](const ModelJob& job) {
           return job.active() && job.run->worker == spec.worker &&
                  job.run->request == spec.request;
         });
}

bool QueueModel::is_repeated_request(const ModelPop& spec) const {
  const auto token = worker_tokens_.find(spec.worker);
  return !spec.request.empty() && token != worker_tokens_.end() && token->second == spec.request;
}

// The deadline of its lease, in unix time.
RespValue QueueModel::deadline(const ModelJob& job) const {
  const int64_t due = std::min(job.run->deadline_steady, job.run->run_deadline_steady);
  return RespValue::of(clock_.now.wall_ms + due - clock_.now.steady_ms);
}

RespValue QueueModel::get(const std::string& id) {
  tick();
  const ModelJob* job = find(id);
  if (job == nullptr) return {};
  const auto place = position(*job);
  RespValue keys = RespValue::array();
  for (const std::string& key : job->keys) keys.items.push_back(RespValue::of(key));
  RespValue out = RespValue::map();
  out.put("id", job->id)
      .put("state", job->state)
      .put("position", place.has_value() ? RespValue::of(*place) : RespValue())
      .put("group", job->group)
      .put("keys", keys)
      .put("cost", job->cost)
      .put("enqueued", clock_.now.shown_ms(job->enqueued_ms))
      .put("attempts", job->attempts)
      .put("crashes", job->crashes)
      .put("successor", std::string(job->successor.has_value() ? "t" : "f"))
      .put("options", told_options(job->options))
      .put("payload", job->payload);
  if (job->active()) {
    out.put("lease", static_cast<int64_t>(job->run->token))
        .put("deadline", deadline(*job))
        .put("cancel", job->run->cancelled ? RespValue::of(job->run->reason) : RespValue());
  }
  if (!job->named_afters.empty()) {
    RespValue after = RespValue::array();
    for (const std::string& one : job->named_afters) after.items.push_back(RespValue::of(one));
    out.put("after", after);
  }
  if (job->state == "delayed") {
    out.put("not_before", clock_.now.shown_ms(job->ticket.gate_ms));
  }
  return out;
}

std::string QueueModel::describe() const {
  std::string out;
  for (const ModelJob& job : jobs_) {
    const auto place = position(job);
    const auto share = share_ms_.find(job.group);
    out += "    model " + name_ + "/" + job.id + " " + job.state + " band " +
           std::to_string(job.band) + " group '" + job.group + "' position " +
           (place.has_value() ? std::to_string(*place) : "-") + " rank " +
           std::to_string(job.ticket.rank) + " seq " + std::to_string(job.ticket.seq) +
           " arrival " + std::to_string(job.arrival) + (job.bound ? " bound" : "") +
           (share == share_ms_.end() ? "" : " share " + std::to_string(share->second)) + "\n";
  }
  return out;
}

RespValue QueueModel::stats() {
  tick();
  RespValue out = RespValue::map();
  for (const char* state : {"pending", "active", "delayed", "blocked"}) {
    out.put(state, count(state));
  }
  for (const char* total :
       {"added", "started", "completed", "failed", "expired", "cancelled", "reclaimed"}) {
    out.put(total, totals_[total]);
  }
  out.put("max_active", max_active());
  return out;
}

ModelServer::ModelServer() {
  clock.is_followed = [this](const std::string& queue, const std::string& id) {
    return std::any_of(followers_.begin(), followers_.end(), [&](const Follower& follower) {
      const ModelReading& reading = follower.reading;
      return follower.queue == queue && reading.ids.contains(id) &&
             (reading.types.empty() || reading.types.contains("progress"));
    });
  };
}

QueueModel& ModelServer::queue(const std::string& name) {
  return queues_.try_emplace(name, name, clock).first->second;
}

namespace {

RespValue item(const RespValue& value, size_t index) {
  return index < value.items.size() ? value.items[index] : RespValue();
}

// The commands for one job each that a command with AND stands for. What is behind POP belongs to
// none of them.
std::vector<Words> single_commands(const Words& words) {
  std::vector<Words> out{{words[0], words[1]}};
  for (size_t i = 2; i < words.size() && words[i] != "POP"; ++i) {
    words[i] == "AND" ? out.push_back({words[0], words[1]}) : out.back().push_back(words[i]);
  }
  return out;
}

}  // namespace

// With BRIEF the reply is the id.
RespValue ModelServer::add(QueueModel& queue, const Words& words, const RespValue& observed) {
  const auto brief = std::find(words.begin() + 4, words.end(), "BRIEF");
  if (brief == words.end()) return queue.add(words, observed);
  Words rest = words;
  rest.erase(rest.begin() + (brief - words.begin()));
  const RespValue added = queue.add(rest, RespValue::map().put("id", observed.text));
  return added.is_error() ? added : RespValue::of(added.field("id"));
}

RespValue ModelServer::Waiter::answered(const RespValue& value) const {
  return answers.has_value() ? RespValue::array({*answers, value}) : value;
}

// Q.ACK, Q.NACK and Q.TOUCH.
RespValue ModelServer::end_runs(const Words& words, const RespValue& observed, int connection,
                                Expected& expected) {
  if (words[2] == "WHERE") return this->queue(words[1]).lose_worker(words[4], words.back());
  const std::vector<Words> commands = single_commands(words);
  const bool several = commands.size() > 1;
  std::set<std::string> ids;
  for (const Words& command : commands) ids.insert(command[2]);
  if (ids.size() != commands.size()) return RespValue::error("BADFIELD field=id");
  QueueModel& queue = this->queue(words[1]);
  const auto then = std::find(words.begin(), words.end(), "POP");
  const bool pops = then != words.end();
  Waiter waiter{connection, {words[1]}, {}, {}};
  if (pops) {
    waiter.spec = parse_model_pop(words, static_cast<size_t>(then - words.begin()) + 1);
    waiter.spec.connection = connection;
  }
  // Its reply may have been lost, so the job may be acknowledged already.
  const bool repeated = drop_older(waiter, expected) || queue.is_repeated_request(waiter.spec);
  RespValue answers = RespValue::array();
  for (size_t i = 0; i < commands.size(); ++i) {
    RespValue answer;
    if (words[0] == "Q.ACK") answer = queue.acknowledge(commands[i]);
    if (words[0] == "Q.NACK") {
      answer = queue.refuse(commands[i], several ? item(observed, i) : observed);
    }
    if (words[0] == "Q.TOUCH") {
      answer = queue.touch(commands[i], connection);
      if (several && !answer.is_error()) answer = *answer.find("cancel");
    }
    answers.items.push_back(answer);
  }
  if (several && words[0] == "Q.TOUCH") {
    const auto worker = std::find(words.begin(), words.end(), "WORKER");
    const bool quiet = worker != words.end() && queue.quiet(*(worker + 1));
    return RespValue::array({RespValue::of(quiet ? "t" : "f"), answers});
  }
  const RespValue reply = several ? answers : answers.items[0];
  if (!pops || (reply.is_error() && !repeated)) return reply;
  if (several) waiter.answers = answers;
  const RespValue jobs = pop(waiter, several ? item(observed, 1) : observed, expected.blocked);
  return waiter.answered(jobs);
}

bool ModelServer::drop_older(const Waiter& newer, Expected& expected) {
  const auto is_named = [&](const std::string& queue) {
    return std::find(newer.queues.begin(), newer.queues.end(), queue) != newer.queues.end();
  };
  bool dropped = false;
  for (auto older = waiters_.begin(); older != waiters_.end();) {
    const bool is_same = !newer.spec.request.empty() && older->spec.request == newer.spec.request &&
                         older->spec.worker == newer.spec.worker &&
                         std::any_of(older->queues.begin(), older->queues.end(), is_named);
    if (!is_same) {
      ++older;
      continue;
    }
    expected.served[older->connection] = older->answered({});
    older = waiters_.erase(older);
    dropped = true;
  }
  return dropped;
}

RespValue ModelServer::pop(const Waiter& waiter, const RespValue& observed, bool& blocked) {
  const auto& [connection, names, spec, answers] = waiter;
  for (const std::string& name : names) {
    if (queue(name).is_repeat(spec)) return queue(name).pop(spec, observed);
  }
  for (const std::string& name : names) {
    RespValue taken = queue(name).pop(spec, observed);
    if (!taken.is_null()) return taken;
  }
  if (spec.block_ms.has_value()) {
    waiters_.push_back(waiter);
    blocked = true;
  }
  return {};
}

RespValue ModelServer::execute(const Words& words, const RespValue& observed, int connection,
                               Expected& expected) {
  const std::string& name = words[0];
  if (name == "Q.POP") {
    const size_t count = static_cast<size_t>(std::atoll(words[1].c_str()));
    const std::vector<std::string> names(words.begin() + 2,
                                         words.begin() + 2 + static_cast<long>(count));
    Waiter waiter{connection, names, parse_model_pop(words, 2 + count), {}};
    waiter.spec.connection = connection;
    drop_older(waiter, expected);
    return pop(waiter, observed, expected.blocked);
  }
  if (name == "Q.ACK" || name == "Q.NACK" || name == "Q.TOUCH") {
    return end_runs(words, observed, connection, expected);
  }
  QueueModel& queue = this->queue(words[1]);
  if (name == "Q.ADD") return add_awaited(words, observed, connection, expected.blocked);
  if (name == "Q.CANCEL") return queue.cancel(words);
  if (name == "Q.MOVE") return queue.move(words);
  if (name == "Q.RETRY") return queue.retry(words);
  if (name == "Q.PURGE") return queue.purge(words.at(4));
  if (name == "Q.CONFIG") return queue.configure(words);
  if (name == "Q.GET") return queue.get(words[2]);
  if (name == "Q.LOG") return read_log(words, connection, expected.blocked);
  if (name == "Q.EVENTS") return read_events(words, connection, expected.blocked);
  if (name == "Q.STATS") return queue.stats();
  return RespValue::error("the model does not know " + name);
}

RespValue ModelServer::add_awaited(const Words& words, const RespValue& observed, int connection,
                                   bool& blocked) {
  QueueModel& queue = this->queue(words[1]);
  RespValue added = add(queue, words, observed);
  const bool waits = words.size() > 5 && words[words.size() - 2] == "WAIT";
  if (added.is_error() || !waits) return added;
  const ModelJob* job = queue.find(words[2]);
  if (job->terminal()) return RespValue::array({added, awaited(queue.get(words[2]))});
  blocked = true;
  begun_ = Await{connection, words[1], words[2], added, added.field("result") == "queued"};
  return {};
}

void ModelServer::tell_ends(Expected& expected) {
  for (auto& [name, queue] : queues_) {
    for (const ModelEnd& end : queue.take_ends()) {
      if (!end.state.empty()) end_log(name, end.id, expected);
      for (auto await = awaits_.begin(); await != awaits_.end();) {
        const bool concerned = await->queue == name && await->id == end.id;
        if (concerned && end.state.empty()) await->for_successor = false;
        if (!concerned || end.state.empty() || (end.has_successor && await->for_successor)) {
          ++await;
          continue;
        }
        RespValue job = RespValue::map();
        job.put("id", end.id).put("state", end.state);
        if (end.state == "completed") job.put("result", end.result);
        expected.served[await->connection] = RespValue::array({await->added, job});
        await = awaits_.erase(await);
      }
    }
  }
  if (begun_.has_value()) awaits_.push_back(*begun_);
  begun_.reset();
}

// The first job in dispatch order that any waiter accepts goes to the earliest such waiter.
bool ModelServer::serve_one(const std::map<int, RespValue>& deliveries, Expected& expected) {
  for (auto& [name, queue] : queues_) {
    auto best = waiters_.end();
    ModelPlace first;
    for (auto waiter = waiters_.begin(); waiter != waiters_.end(); ++waiter) {
      if (std::find(waiter->queues.begin(), waiter->queues.end(), name) == waiter->queues.end()) {
        continue;
      }
      ModelPlace place;
      if (queue.choose(waiter->spec, place) == nullptr) continue;
      if (best != waiters_.end() && !(place < first)) continue;
      best = waiter;
      first = place;
    }
    if (best == waiters_.end()) continue;
    const auto delivered = deliveries.find(best->connection);
    RespValue jobs = delivered == deliveries.end() ? RespValue() : delivered->second;
    if (best->answers.has_value()) jobs = item(jobs, 1);
    expected.served[best->connection] = best->answered(queue.pop(best->spec, jobs));
    waiters_.erase(best);
    return true;
  }
  return false;
}

void ModelServer::serve(const std::map<int, RespValue>& deliveries, Expected& expected) {
  do {
    for (auto waiter = waiters_.begin(); waiter != waiters_.end();) {
      RespValue error;
      if (waiter->spec.id.has_value()) error = queue(waiter->queues[0]).gone(waiter->spec);
      if (error.is_error()) {
        expected.served[waiter->connection] = waiter->answered(error);
        waiter = waiters_.erase(waiter);
      } else {
        ++waiter;
      }
    }
  } while (serve_one(deliveries, expected));
}

ModelServer::Expected ModelServer::run(int connection, const Words& words,
                                       const RespValue& observed,
                                       const std::map<int, RespValue>& deliveries) {
  Expected expected;
  expected.reply = execute(words, observed, connection, expected);
  tell_ends(expected);
  serve(deliveries, expected);
  serve_readers(deliveries, expected);
  return expected;
}

ModelServer::Expected ModelServer::run_timers(const std::map<int, RespValue>& deliveries) {
  Expected expected;
  for (auto& [name, queue] : queues_) queue.run_timers();
  tell_ends(expected);
  serve(deliveries, expected);
  serve_readers(deliveries, expected);
  return expected;
}

void ModelServer::disconnect(int connection) {
  stop_waiting(connection);
  for (auto& [name, queue] : queues_) queue.connection_lost(connection);
}

std::optional<RespValue> ModelServer::stop_waiting(int connection) {
  const auto is_its = [&](const auto& waiter) { return waiter.connection == connection; };
  waiters_.remove_if(is_its);
  followers_.remove_if(is_its);
  std::optional<RespValue> reply;
  if (const auto reader = std::find_if(log_readers_.begin(), log_readers_.end(), is_its);
      reader != log_readers_.end()) {
    reply = queue(reader->words[1]).log(reader->words);
    log_readers_.erase(reader);
  }
  if (const auto await = std::find_if(awaits_.begin(), awaits_.end(), is_its);
      await != awaits_.end()) {
    const RespValue job = awaited(queue(await->queue).get(await->id));
    reply = RespValue::array({await->added, job});
    awaits_.erase(await);
  }
  return reply;
}

bool ModelServer::waits(int connection) const {
  const auto has_its = [&](const auto& waiters) {
    return std::any_of(waiters.begin(), waiters.end(),
                       [&](const auto& waiter) { return waiter.connection == connection; });
  };
  return has_its(waiters_) || has_its(awaits_) || has_its(log_readers_) || has_its(followers_);
}

void ModelServer::restart() {
  waiters_.clear();
  awaits_.clear();
  log_readers_.clear();
  followers_.clear();
  for (auto& [name, queue] : queues_) queue.restart();
}

}  // namespace sluice::test
