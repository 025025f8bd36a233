// The complete state of a queue as sorted lines of text, except what a restart resets: deadlines,
// lease holders, distributions. Queues with equal lines are equal. `now_ms`: times up to then count
// as then, where no record tells them.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "engine/base/numbers.h"
#include "engine/queue/queue.h"

namespace sluice::test {

inline std::string dump_number(Bytes name, int64_t value) {
  return " " + std::string(name) + "=" + std::to_string(value);
}
inline std::string dump_number(Bytes name, uint64_t value) {
  return dump_number(name, static_cast<int64_t>(value));
}
inline std::string dump_text(Bytes name, Bytes value) {
  return " " + std::string(name) + "='" + std::string(value) + "'";
}

inline std::string dump_options(const JobOptions* options) {
  if (options == nullptr) return "";
  std::string out =
      dump_number("lease", options->lease_ms) + dump_number("max_run", options->max_run_ms) +
      dump_number("retry", int64_t{options->retry}) +
      dump_number("base", options->backoff_base_ms) + dump_number("max", options->backoff_max_ms);
  for (const std::string& need : options->by_need()) out += dump_text("need", need);
  for (const std::string& id : options->by_after()) out += dump_text("after", id);
  for (const auto& [name, value] : options->tags) out += dump_text("tag:" + name, value);
  // These options count as absent if none of them is given.
  static const std::string kNothing = " lease=-1 max_run=-1 retry=-1 base=-1 max=-1";
  return out == kNothing ? "" : out;
}

inline std::string dump_run(const JobRun* run) {
  if (run == nullptr) return "";
  return dump_number("token", run->token) +
         dump_text("worker", run->worker == nullptr ? Bytes() : Bytes(run->worker->name)) +
         dump_text("request", run->request_token) + dump_number("started", run->started_ms) +
         dump_number("lease", run->lease_ms) +
         dump_number("limit", run->run_deadline_steady == INT64_MAX
                                  ? int64_t{-1}
                                  : run->run_deadline_steady - run->started_steady) +
         dump_text("charged", format_double(run->charged_ms)) +
         dump_number("cancelled", int64_t{run->cancelled}) +
         dump_text("reason", run->cancel_reason);
}

inline std::string dump_job(const Job& job) {
  static const JobExtras kNone;
  const JobExtras& extras = job.extras_if() == nullptr ? kNone : *job.extras_if();
  std::string out = "job '" + std::string(job.id()) + "' " +
                    std::string(job_state_name(job.state)) +
                    dump_number("band", int64_t{job.band}) + dump_number("rank", job.rank) +
                    dump_number("seq", job.seq) + dump_text("group", job.lane->group->name) +
                    dump_number("lifo", int64_t{job.lane->lifo});
  for (const Key* key : job.lane->keys->keys) out += dump_text("key", key->name);
  out += dump_number("cost", int64_t{job.cost()}) + dump_number("arrival", job.arrival()) +
         dump_number("enqueued", job.enqueued_ms()) + dump_number("release", job.release_ms()) +
         dump_number("gate", job.gate_ms()) + dump_number("at", extras.at_ms) +
         dump_number("attempts", int64_t{extras.attempts}) +
         dump_number("crashes", int64_t{extras.crashes}) +
         dump_number("retries", int64_t{extras.retries_used}) +
         dump_number("bound", int64_t{extras.bound}) + dump_number("boost", extras.boost_ms) +
         dump_number("ttl", extras.ttl_ms) + dump_number("ttl_left", extras.ttl_left_ms) +
         dump_number("ttl_due", extras.ttl_due_ms) +
         dump_number("acknowledged", extras.acknowledged) + dump_text("error", extras.error) +
         dump_text("progress", extras.progress);
  for (const std::string& need : extras.unmet) out += dump_text("unmet", need);
  out += " options:" + dump_options(job.options()) + " run:" + dump_run(job.run());
  if (const JobEnd* end = job.end()) {
    out += " end:" + dump_number("finished", end->finished_ms) +
           dump_number("order", end->finish_order) + dump_number("token", end->last_token) +
           dump_number("run", end->run_ms) + dump_text("result", end->result);
  }
  if (const JobSuccessor* next = extras.successor.get()) {
    out += " successor:" + dump_text("payload", next->payload) +
           dump_number("replaces", int64_t{next->replaces}) +
           dump_number("band", int64_t{next->band}) + dump_number("ttl", next->ttl_ms) +
           dump_text("group", next->group) + dump_number("cost", int64_t{next->cost}) +
           dump_number("boost", next->boost_ms) + dump_number("gate", next->gate_ms) +
           dump_number("at", next->at_ms) + dump_options(&next->options);
    for (const std::string& key : next->keys) out += dump_text("key", key);
  }
  return out + dump_text("payload", job.payload());
}

inline std::string dump_order(Bytes name, const OrderedIndex<Job*>& index) {
  std::string out(name);
  for (auto at = index.at(0); at.valid(); at.next()) out += " " + std::string(at.value()->id());
  return out;
}

inline std::string dump_limiter(const Limiter& limiter, int64_t now_ms) {
  return dump_number("used", limiter.used) + dump_number("max", limiter.max_active) +
         dump_number("arrival_us", std::max(limiter.arrival_us, now_ms * 1000)) +
         dump_number("paused", int64_t{limiter.paused});
}

inline void dump_indexes(const Queue& queue, int64_t now_ms, std::vector<std::string>& out) {
  out.push_back(dump_order("delays", queue.delays));
  out.push_back(dump_order("ttls", queue.ttls));
  out.push_back(dump_order("runs", queue.runs));
  out.push_back(dump_order("completed", queue.ended[0]));
  out.push_back(dump_order("failed", queue.ended[1]));
  for (const uint8_t number : queue.lanes.used_bands()) {
    const Band& band = *queue.lanes.band(number);
    if (band.pending.empty() && band.waiting == 0 && band.active == 0) continue;
    out.push_back(dump_order("band " + std::to_string(number), band.pending) +
                  dump_number("waiting", band.waiting) + dump_number("active", band.active));
  }
  out.push_back("virtual " + format_double(queue.lanes.virtual_ms()));
  queue.lanes.groups().for_each([&](const Group* group) {
    out.push_back("group" + dump_text("name", group->name) + dump_limiter(group->limiter, now_ms) +
                  dump_number("waiting", group->waiting) + dump_number("active", group->active) +
                  dump_number("pending", group->pending) +
                  dump_text("virtual", format_double(group->virtual_ms)));
  });
  queue.lanes.keys().for_each([&](const Key* key) {
    out.push_back("key" + dump_text("name", key->name) + dump_limiter(key->limiter, now_ms));
  });
  for (const auto& [need, jobs] : queue.dependents) {
    out.push_back("dependents of " + need + dump_number("jobs", uint64_t{jobs.size()}));
  }
  for (const auto& [id, jobs] : queue.followers) {
    out.push_back("followers of " + id + dump_number("jobs", uint64_t{jobs.size()}));
  }
  for (const auto& [number, release] : queue.releases.by_number()) {
    out.push_back("release" + dump_number("number", number) + dump_text("need", release.need) +
                  dump_number("followers", int64_t{release.followers}) +
                  dump_number("completed", int64_t{release.completed}) +
                  dump_order(" of", release.dependents));
  }
  for (const auto& [name, worker] : queue.workers.by_name()) {
    // Workers without leases are known to this process only, as is the request of a pop that got
    // nothing.
    if (worker->active.empty()) continue;
    out.push_back("worker" + dump_text("name", name) +
                  dump_number("active", uint64_t{worker->active.size()}));
  }
}

inline std::string dump_log(const Job& job) {
  const JobLog* log = job.extras_if() == nullptr ? nullptr : job.extras_if()->log.get();
  if (log == nullptr) return "";
  return dump_number("log from", log->offset) + dump_text("log", log->bytes);
}

inline std::vector<std::string> dump_queue(const Queue& queue, int64_t now_ms = 0) {
  std::vector<std::string> out;
  const Totals& totals = queue.stats.all.totals;
  out.push_back("queue" + dump_number("ms", std::max(queue.queue_ms, now_ms)) +
                dump_number("seq", queue.next_seq) + dump_number("token", queue.next_token) +
                dump_number("finish", queue.next_finish) +
                dump_number("adaptive", queue.adaptive_max) + dump_limiter(queue.limiter, now_ms) +
                dump_number("successors", queue.successors));
  out.push_back(
      "totals" + dump_number("added", totals.added) + dump_number("started", totals.started) +
      dump_number("completed", totals.completed) + dump_number("failed", totals.failed) +
      dump_number("expired", totals.expired) + dump_number("cancelled", totals.cancelled) +
      dump_number("reclaimed", totals.reclaimed));
  for (const auto& [level, pattern] : queue.config.rules()) {
    std::string line = "config " + std::to_string(static_cast<int>(level)) + " " + pattern;
    for (const auto& [name, value] : queue.config.recorded(level, pattern)) {
      line += dump_text(name, value);
    }
    out.push_back(line);
  }
  queue.jobs.for_each([&](const Job* job) { out.push_back(dump_job(*job) + dump_log(*job)); });
  dump_indexes(queue, now_ms, out);
  queue.events.read(0, [&](const Event& event) {
    std::string line = "event " + std::to_string(event.seq) + " " + std::to_string(event.time_ms) +
                       " " + std::string(event_type_name(event.type)) + dump_text("id", event.id);
    Bytes fields = event.fields;
    Bytes name;
    Bytes value;
    while (next_event_field(fields, name, value)) line += dump_text(name, value);
    out.push_back(line);
    return true;
  });
  out.push_back("last event " + std::to_string(queue.events.last_seq()));
  std::sort(out.begin(), out.end());
  return out;
}

// The lines in which `a` and `b` differ, for messages.
inline std::string dump_difference(const std::vector<std::string>& a,
                                   const std::vector<std::string>& b) {
  std::vector<std::string> only;
  std::set_symmetric_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(only));
  std::string out;
  for (const std::string& line : only) {
    out += std::find(a.begin(), a.end(), line) != a.end() ? "\n- " : "\n+ ";
    out += line;
  }
  return out;
}

}  // namespace sluice::test
