// QueueModel: Q.ADD.
#include <algorithm>

#include "tests/model/queue_model.h"

namespace sluice::test {

void QueueModel::set_options(ModelJob& job, const ModelAdd& spec) {
  const ModelOptions& given = spec.options;
  if (given.ttl_ms.has_value()) job.options.ttl_ms = given.ttl_ms;
  if (given.lease_ms.has_value()) job.options.lease_ms = given.lease_ms;
  if (given.max_run_ms.has_value()) job.options.max_run_ms = given.max_run_ms;
  if (given.retry.has_value()) job.options.retry = given.retry;
  if (given.backoff_ms.has_value()) job.options.backoff_ms = given.backoff_ms;
  if (!given.tags.empty()) job.options.tags = given.tags;
}

// The group's value when the job is added stays with the job.
void QueueModel::hold_ttl(ModelAdd& spec) const {
  if (!spec.options.ttl_ms.has_value()) spec.options.ttl_ms = group_ttl(spec.group.value_or(""));
}

RespValue QueueModel::add_new(ModelAdd spec, const char* result) {
  hold_ttl(spec);
  ModelJob job;
  job.id = spec.id;
  job.payload = spec.payload;
  job.band = spec.band.value_or(default_band());
  job.group = spec.group.value_or("");
  job.keys = spec.keys;
  job.cost = spec.cost.value_or(1);
  set_options(job, spec);
  job.enqueued_ms = queue_ms_;
  job.arrival = next_seq_++;
  ModelTicket& ticket = job.ticket;
  ticket.seq = job.arrival;
  if (spec.delay_ms.has_value()) ticket.gate_ms = queue_ms_ + *spec.delay_ms;
  if (spec.at_ms.has_value()) ticket.gate_ms = *spec.at_ms + clock_.now.ahead_ms;
  if (spec.gate_ms.has_value()) ticket.gate_ms = *spec.gate_ms;
  ticket.release_ms = std::max(queue_ms_, ticket.gate_ms);
  ticket.boost_ms = spec.boost_ms.value_or(0);
  ticket.rank = ticket.release_ms - ticket.boost_ms;
  job.named_needs = spec.needs;
  for (const std::string& need : spec.needs) {
    // A job may name its own predecessor of this id, which is gone by now if it had completed.
    const ModelJob* needed = find(need);
    if (needed != nullptr && needed->state != "completed") job.needs.insert(need);
  }
  job.named_afters = spec.afters;
  for (const std::string& id : spec.afters) {
    const ModelJob* first = find(id);
    if (first != nullptr && !first->terminal()) job.afters.insert(id);
  }
  jobs_.push_back(job);
  tell("added", job);
  ++totals_["added"];
  begin_waiting(jobs_.back());
  return told(result, jobs_.back());
}

RespValue QueueModel::set_successor(ModelJob& old, ModelAdd spec) {
  const bool replaces = spec.mode == "REPLACE";
  if (replaces && too_large(spec)) return RespValue::error("BADFIELD field=cost");
  if (replaces && !spec.needs.empty()) return RespValue::error("BADFIELD field=need");
  if (replaces && !spec.afters.empty()) return RespValue::error("BADFIELD field=after");
  // Both count from now on, not from when it becomes the job.
  if (spec.at_ms.has_value()) spec.gate_ms = *spec.at_ms + clock_.now.ahead_ms;
  if (spec.delay_ms.has_value()) spec.gate_ms = queue_ms_ + *spec.delay_ms;
  spec.at_ms.reset();
  spec.delay_ms.reset();
  if (replaces) {
    const std::string group = spec.group.value_or("");
    const bool there = old.successor.has_value() && old.successor->mode == "REPLACE" &&
                       old.successor->group == group;
    const std::string refused = group == old.group || there ? "" : check_group(group);
    if (!refused.empty()) return RespValue::error(refused);
    spec.group = group;
    hold_ttl(spec);
  }
  old.successor = spec;
  tell("updated", old);
  if (replaces) {
    tell("signalled", old);
    old.run->cancelled = true;
    old.run->reason = "replaced";
    old.run->term_ms = std::max<int64_t>(1, old.run->deadline_steady - clock_.now.steady_ms);
  }
  return told("queued", old);
}

RespValue QueueModel::update(ModelJob& old, const ModelAdd& spec) {
  tell("updated", old);
  stop_ttl(old);
  old.payload = spec.payload;
  set_options(old, spec);
  if (spec.options.ttl_ms.has_value()) old.ttl_left_ms.reset();
  if (spec.band.has_value() && *spec.band != old.band) {
    old.band = *spec.band;
    if (old.bound) {
      old.ticket.rank = old.ticket.release_ms - old.ticket.boost_ms;
      old.ticket.seq = old.arrival;
    }
  }
  begin_waiting(old);
  return told("updated", old);
}

RespValue QueueModel::add(const Words& words, const RespValue& observed) {
  tick();
  ModelAdd spec = parse_model_add(words);
  if (spec.band.has_value()) spec.band = band_of(*spec.band);
  if (spec.id == "*") spec.id = observed.field("id");
  if (static_cast<int64_t>(spec.payload.size()) > number("max_payload")) {
    return RespValue::error("TOOBIG *");
  }
  ModelJob* old = find(spec.id);
  if (old != nullptr && spec.mode == "ERROR") return RespValue::error(about("DUPLICATE", *old));
  if (old != nullptr && spec.mode == "KEEP") return told("kept", *old);
  if (old != nullptr && old->active()) return set_successor(*old, spec);
  if (old != nullptr && old->waiting() && spec.mode == "UPDATE") return update(*old, spec);
  if (too_large(spec)) return RespValue::error("BADFIELD field=cost");
  for (const std::string& need : spec.needs) {
    ModelJob* needed = find(need);
    if (needed == nullptr) return RespValue::error("NOJOB id=" + need);
    if (needed->terminal() && needed->state != "completed") {
      return RespValue::error(about("NEEDFAILED", *needed));
    }
  }
  for (const std::string& id : spec.afters) {
    if (find(id) == nullptr) return RespValue::error("NOJOB id=" + id);
  }
  if (old != nullptr && old->waiting()) {
    const std::string group = spec.group.value_or("");
    const std::string refused = group == old->group ? "" : check_group(group);
    if (!refused.empty()) return RespValue::error(refused);
    const bool needs = std::any_of(spec.needs.begin(), spec.needs.end(), [&](const auto& need) {
      return find(need)->state != "completed";
    });
    const bool needed = std::any_of(jobs_.begin(), jobs_.end(), [&](const ModelJob& job) {
      return job.waiting() && job.needs.contains(spec.id);
    });
    const bool itself =
        std::find(spec.needs.begin(), spec.needs.end(), spec.id) != spec.needs.end();
    if (itself || (needs && needed)) return RespValue::error("BADFIELD field=need");
    for (const std::string& id : spec.afters) {
      const bool waits = needed && !find(id)->terminal();
      if (id == spec.id || waits) return RespValue::error("BADFIELD field=after");
    }
    // Jobs that need this id wait for the new job, those that come after it do not.
    tell("cancelled", *old);
    ++totals_["cancelled"];
    ends_.push_back({spec.id, "cancelled", "", false});
    const ModelJob left = *old;
    forget(spec.id);
    pair(left);
    add_new(spec, "replaced");
    release_followers(spec.id);
    return told("replaced", *find(spec.id));
  }
  const std::string refused = check_limits(spec);
  if (!refused.empty()) return RespValue::error(refused);
  exists = true;
  forget(spec.id);
  return add_new(spec, "added");
}

}  // namespace sluice::test
