#include "engine/queue/workers.h"

#include "engine/base/check.h"
#include "engine/queue/job.h"

namespace sluice {

namespace {

// A worker, its node in the map, its name in both, and its token.
size_t bytes_of(const Worker& worker) {
  constexpr size_t kNodeBytes = 4 * sizeof(void*) + sizeof(Workers::ByName::value_type);
  return kNodeBytes + sizeof(Worker) + 2 * worker.name.size() + worker.request_token.size();
}

}  // namespace

Worker* Workers::find(Bytes name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second.get();
}

Worker* Workers::join(Bytes name) {
  if (name.empty()) return nullptr;
  if (Worker* known = find(name)) return known;
  auto made = std::make_unique<Worker>();
  made->name = name;
  made->number = ++last_number_;
  bytes_ += bytes_of(*made);
  return by_name_.emplace(std::string(name), std::move(made)).first->second.get();
}

Worker* Workers::hear(Bytes name, int64_t now_ms) {
  Worker* worker = join(name);
  if (worker == nullptr) return nullptr;
  hear(worker, now_ms);
  if (worker->active.empty() && !worker->idle) {
    if (by_name_.size() > kMost && !idle_.empty()) forget(idle_.front().value);
    begin_idle(worker);
  }
  return worker;
}

void Workers::hear(Worker* worker, int64_t now_ms) {
  if (worker == nullptr || worker->seen_ms == now_ms) return;
  const bool idle = worker->idle;
  if (idle) end_idle(worker);
  worker->seen_ms = now_ms;
  if (idle) begin_idle(worker);
}

void Workers::note_request(Worker* worker, Bytes token) {
  if (worker == nullptr || token.empty()) return;
  bytes_ -= bytes_of(*worker);
  worker->request_token = token;
  bytes_ += bytes_of(*worker);
}

void Workers::add_run(Worker* worker, Job* job) {
  if (worker->idle) end_idle(worker);
  const JobRun& run = *job->run();
  bytes_ -= worker->active.memory_bytes();
  worker->active.insert(static_cast<uint64_t>(run.started_ms), run.token, job);
  bytes_ += worker->active.memory_bytes();
}

void Workers::remove_run(Worker* worker, Job* job) {
  const JobRun& run = *job->run();
  bytes_ -= worker->active.memory_bytes();
  const bool was_there =
      worker->active.erase(static_cast<uint64_t>(run.started_ms), run.token, job);
  CHECK(was_there);
  bytes_ += worker->active.memory_bytes();
}

void Workers::clear_runs() {
  for (const auto& [name, worker] : by_name_) {
    bytes_ -= worker->active.memory_bytes();
    worker->active.clear();
  }
}

void Workers::leave(Worker* worker) {
  if (worker == nullptr || !worker->active.empty()) return;
  if (worker->seen_ms == 0) return forget(worker);
  if (!worker->idle) begin_idle(worker);
}

int64_t Workers::oldest_ms() const {
  return idle_.empty() ? INT64_MAX : static_cast<int64_t>(idle_.front().major);
}

void Workers::keep(const Workers& from) {
  for (const auto& [name, old] : from.by_name_) {
    if (old->seen_ms == 0) continue;
    Worker* worker = hear(name, old->seen_ms);
    worker->completed = old->completed;
    worker->failed = old->failed;
    note_request(worker, old->request_token);
  }
}

void Workers::begin_idle(Worker* worker) {
  idle_.insert(static_cast<uint64_t>(worker->seen_ms), worker->number, worker);
  worker->idle = true;
}

void Workers::end_idle(Worker* worker) {
  const bool was_there =
      idle_.erase(static_cast<uint64_t>(worker->seen_ms), worker->number, worker);
  CHECK(was_there);
  worker->idle = false;
}

void Workers::forget(Worker* worker) {
  if (worker->idle) end_idle(worker);
  bytes_ -= bytes_of(*worker);
  by_name_.erase(by_name_.find(worker->name));
}

}  // namespace sluice
