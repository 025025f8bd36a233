// QueueModel: dispatch order: lanes, limits, rates, shares, LIFO tickets, positions.
#include <algorithm>
#include <tuple>
#include <utility>

#include "tests/model/queue_model.h"

namespace sluice::test {

namespace {

// In the contract, ranks of jobs moved to the front precede all others.
constexpr int64_t kFront = -(int64_t{1} << 60);

// The assumed duration of a run while nothing is known.
constexpr double kUnknownRunMs = 1000;

struct Gcra {
  int64_t interval_us = 0;
  int64_t burst = 0;
};

// n/ms[:burst]
Gcra parse_rate(const std::string& text) {
  const size_t slash = text.find('/');
  if (slash == std::string::npos) return {};
  const int64_t tokens = std::atoll(text.c_str());
  const size_t colon = text.find(':');
  if (tokens == 0) return {};
  const int64_t interval_us = std::atoll(text.c_str() + slash + 1) * 1000 / tokens;
  return {std::max<int64_t>(1, interval_us),
          colon == std::string::npos ? tokens : std::atoll(text.c_str() + colon + 1)};
}

}  // namespace

bool QueueModel::same_stack(const ModelJob& a, const ModelJob& b) const {
  return a.band == b.band && a.group == b.group && a.keys == b.keys;
}

void QueueModel::pair(const ModelJob& member) {
  if (!is_lifo(member)) return;
  std::vector<ModelJob*> stack;
  std::vector<ModelTicket> tickets;
  for (ModelJob& job : jobs_) {
    if (job.bound || !same_stack(job, member)) continue;
    if (job.state != "pending" && job.state != "delayed") continue;
    stack.push_back(&job);
    tickets.push_back(job.ticket);
  }
  std::sort(stack.begin(), stack.end(),
            [](const ModelJob* a, const ModelJob* b) { return a->arrival > b->arrival; });
  std::sort(tickets.begin(), tickets.end(), [&](const ModelTicket& a, const ModelTicket& b) {
    return std::tuple(!due(a), a.rank, a.seq) < std::tuple(!due(b), b.rank, b.seq);
  });
  for (size_t i = 0; i < stack.size(); ++i) {
    stack[i]->ticket = tickets[i];
    stack[i]->state = due(tickets[i]) ? "pending" : "delayed";
    due(tickets[i]) ? start_ttl(*stack[i]) : stop_ttl(*stack[i]);
  }
}

void QueueModel::start_ttl(ModelJob& job) {
  if (job.ttl_due_ms != 0) return;
  const int64_t ttl_ms = job.ttl_left_ms.value_or(job.options.ttl_ms.value_or(0));
  job.ttl_due_ms = ttl_ms == 0 && !job.ttl_left_ms.has_value() ? 0 : queue_ms_ + ttl_ms;
}

// A job that has spent nothing starts with the full budget, whatever it is by then.
void QueueModel::stop_ttl(ModelJob& job) {
  if (job.ttl_due_ms == 0) return;
  const int64_t left_ms = std::max<int64_t>(0, job.ttl_due_ms - queue_ms_);
  job.ttl_left_ms.reset();
  if (left_ms == 0 || left_ms != job.options.ttl_ms.value_or(0)) job.ttl_left_ms = left_ms;
  job.ttl_due_ms = 0;
}

// In a LIFO group a job that was moved or returned keeps its own ticket and competes by it.
bool QueueModel::same_lane(const ModelJob& a, const ModelJob& b) const {
  return same_stack(a, b) && (!is_lifo(a) || a.bound == b.bound);
}

// First of its band, group and set of keys. In a LIFO group the newest job holds the first ticket.
bool QueueModel::lane_first(const ModelJob& job) const {
  return std::none_of(jobs_.begin(), jobs_.end(), [&](const ModelJob& other) {
    return other.state == "pending" && same_lane(job, other) &&
           std::pair(other.ticket.rank, other.ticket.seq) <
               std::pair(job.ticket.rank, job.ticket.seq);
  });
}

// Slots in use: of the queue, a group, or a key (empty names: any).
int64_t QueueModel::used(const std::string& group, const std::string& key) const {
  int64_t slots = 0;
  for (const ModelJob& job : jobs_) {
    if (!job.active()) continue;
    if (!group.empty() && job.group != group) continue;
    if (!key.empty() && !job.keys.contains(key)) continue;
    slots += job.cost;
  }
  return slots;
}

std::vector<std::pair<std::string, std::string>> QueueModel::rates_of(const ModelJob& job) const {
  std::vector<std::pair<std::string, std::string>> out{{"q", value("rate")}};
  if (!job.group.empty()) {
    out.emplace_back("g:" + job.group, rule_value(group_rules_, job.group, "rate"));
  }
  for (const std::string& key : job.keys) {
    out.emplace_back("k:" + key, rule_value(key_rules_, key, "rate"));
  }
  return out;
}

bool QueueModel::rate_allows(const std::string& limit, const std::string& rate) const {
  const Gcra gcra = parse_rate(rate);
  const auto found = arrival_us_.find(limit);
  if (gcra.interval_us == 0 || found == arrival_us_.end()) return true;
  return found->second - gcra.interval_us * (gcra.burst - 1) <= queue_ms_ * 1000;
}

void QueueModel::take_tokens(const ModelJob& job) {
  for (const auto& [limit, rate] : rates_of(job)) {
    const Gcra gcra = parse_rate(rate);
    if (gcra.interval_us == 0) continue;
    int64_t& arrival = arrival_us_[limit];
    arrival = std::max(arrival, queue_ms_ * 1000) + gcra.interval_us;
    taken_.try_emplace(limit, Taken{rate, queue_ms_, 0}).first->second.last_ms = queue_ms_;
  }
}

// What may have refilled of a token when a later one was taken does not come back.
void QueueModel::give_tokens_back(const ModelJob& job, int64_t began_ms) {
  for (const auto& [limit, rate] : rates_of(job)) {
    const int64_t interval_us = parse_rate(rate).interval_us;
    const auto taken = taken_.find(limit);
    if (interval_us == 0 || taken == taken_.end()) continue;
    if (began_ms < taken->second.first_ms || began_ms > taken->second.last_ms) continue;
    const int64_t refilled_us = (taken->second.last_ms - began_ms) * 1000;
    arrival_us_[limit] -= std::max<int64_t>(0, interval_us - refilled_us);
  }
}

void QueueModel::bound_rates() {
  const auto rate_of = [&](const std::string& limit) {
    if (limit[0] == 'g') return rule_value(group_rules_, limit.substr(2), "rate");
    if (limit[0] == 'k') return rule_value(key_rules_, limit.substr(2), "rate");
    return value("rate");
  };
  std::erase_if(taken_,
                [&](const auto& taken) { return taken.second.rate != rate_of(taken.first); });
  for (auto& [limit, arrival] : arrival_us_) {
    const Gcra gcra = parse_rate(rate_of(limit));
    const int64_t burst_us = gcra.interval_us * gcra.burst;
    arrival = std::min(arrival, burst_us == 0 ? 0 : queue_ms_ * 1000 + burst_us);
  }
}

bool QueueModel::limits_allow(const ModelJob& job) const {
  if (paused(job.group, "out")) return false;
  for (const auto& [limit, rate] : rates_of(job)) {
    if (!rate_allows(limit, rate)) return false;
  }
  const int64_t group_cap = group_number(job.group, "max_active");
  if (group_cap != 0 && used(job.group, "") + job.cost > group_cap) return false;
  return std::all_of(job.keys.begin(), job.keys.end(), [&](const std::string& key) {
    const int64_t cap = key_number(key, "max_active");
    return cap == 0 || used("", key) + job.cost <= cap;
  });
}

bool QueueModel::fits_queue(const ModelJob& job, const ModelPop& spec) const {
  const int64_t in_use = used("", "");
  const int64_t cap = max_active();
  if (spec.cap != 0 && in_use + job.cost > spec.cap) return false;
  return (cap == 0 || in_use + job.cost <= cap) && !reserved(job.band, job.cost);
}

// The remaining slots are for more urgent bands.
bool QueueModel::reserved(int band, int64_t cost) const {
  if (!is_reserved_against(band) || max_active() == 0) return false;
  return used("", "") + cost > max_active() - numbers("reserve")[1];
}

ModelPlace QueueModel::place_of(const ModelJob& job) const {
  ModelPlace place;
  place.band = job.band;
  const int64_t aging_ms = number("aging_ms");
  if (aging_ms != 0) {
    const int64_t age_ms = std::max<int64_t>(0, queue_ms_ - job.ticket.release_ms);
    place.band = static_cast<int>(std::max<int64_t>(0, job.band - age_ms / aging_ms));
  }
  place.behind_front = job.ticket.rank >= kFront;
  if (place.behind_front && value("fair") == "on") {
    const auto found = share_ms_.find(job.group);
    place.share_ms = found == share_ms_.end() ? 0 : found->second;
  }
  place.rank = job.ticket.rank;
  place.seq = job.ticket.seq;
  return place;
}

// The next job, provided the queue has slots for it. A band without any slot besides the reserved
// ones is skipped.
ModelJob* QueueModel::first_in_order(const std::set<std::string>& match, ModelPlace& place) {
  // The first job of each band; then the bands are compared, with older jobs counted as more
  // urgent.
  std::map<int, std::pair<ModelPlace, ModelJob*>> first_of_band;
  for (ModelJob& job : jobs_) {
    if (job.state != "pending" || !lane_first(job) || !limits_allow(job)) continue;
    if (!match.empty() && std::none_of(match.begin(), match.end(), [&](const std::string& key) {
          return job.keys.contains(key);
        })) {
      continue;
    }
    if (reserved(job.band, 1)) continue;
    ModelPlace here = place_of(job);
    here.band = 0;
    const auto found = first_of_band.find(job.band);
    if (found == first_of_band.end() || here < found->second.first) {
      first_of_band[job.band] = {here, &job};
    }
  }
  const auto first_of = [&](bool reserved_for) {
    ModelJob* first = nullptr;
    for (const auto& [band, choice] : first_of_band) {
      if (reserved_for && is_reserved_against(band)) continue;
      const ModelPlace here = place_of(*choice.second);
      if (first != nullptr && !(here < place)) continue;
      first = choice.second;
      place = here;
    }
    return first;
  };
  ModelJob* first = first_of(false);
  if (first == nullptr || !reserved(first->band, first->cost)) return first;
  // Jobs for which slots are reserved do not wait for a job that may not use these slots.
  ModelJob* urgent = first_of(true);
  return urgent != nullptr ? urgent : first;
}

ModelJob* QueueModel::choose(const ModelPop& spec, ModelPlace& place) {
  tick();
  if (quiet(spec.worker)) return nullptr;
  // A job too large for the free slots keeps them: no other job passes it.
  if (!spec.id.has_value()) {
    ModelJob* first = first_in_order(spec.match, place);
    return first != nullptr && fits_queue(*first, spec) ? first : nullptr;
  }
  ModelJob* job = find(*spec.id);
  if (job == nullptr || job->state != "pending" || !limits_allow(*job)) return nullptr;
  const bool is_held = std::any_of(jobs_.begin(), jobs_.end(), [&](const ModelJob& other) {
    return other.state == "pending" && same_lane(other, *job) && lane_first(other) &&
           !limits_allow(other);
  });
  if (is_held || !fits_queue(*job, spec)) return nullptr;
  const ModelJob* first = first_in_order({}, place);
  if (first != job && !fits_queue(*first, {})) return nullptr;
  place = place_of(*job);
  return job;
}

// Pending jobs before it by (band, rank), including parked ones.
std::optional<int64_t> QueueModel::position(const ModelJob& job) const {
  if (job.state != "pending") return std::nullopt;
  const auto key = [](const ModelJob& one) {
    return std::tuple(one.band, one.ticket.rank, one.ticket.seq);
  };
  return std::count_if(jobs_.begin(), jobs_.end(), [&](const ModelJob& other) {
    return other.state == "pending" && key(other) < key(job);
  });
}

void QueueModel::backlog_begins(const std::string& group) {
  if (value("fair") != "on") return;
  share_ms_[group] = std::max(share_ms_[group], virtual_ms_);
}

// The share of a group without the charges for unfinished runs.
double QueueModel::received_ms(const std::string& group) {
  double guessed_ms = 0;
  for (const ModelJob& job : jobs_) {
    if (job.run.has_value() && job.group == group) guessed_ms += job.run->charged_ms;
  }
  return share_ms_[group] - guessed_ms / weight(group);
}

void QueueModel::charge(ModelJob& job) {
  if (value("fair") != "on") return;
  virtual_ms_ = std::max(virtual_ms_, received_ms(job.group));
  double expected_ms = 0;
  for (const int64_t run_ms : runs_ms_) expected_ms += static_cast<double>(run_ms);
  expected_ms = runs_ms_.empty()
                    ? kUnknownRunMs
                    : std::max(1.0, expected_ms / static_cast<double>(runs_ms_.size()));
  job.run->charged_ms = static_cast<double>(job.cost) * expected_ms;
  share_ms_[job.group] += job.run->charged_ms / weight(job.group);
}

// The cost of a run is divided among all backlogged groups: the queue's virtual time rises by that,
// but not above what this group has received.
void QueueModel::settle_charge(ModelJob& job) {
  const double charged_ms = std::exchange(job.run->charged_ms, 0);
  if (charged_ms == 0) return;
  const auto run_ms = static_cast<double>(queue_ms_ - job.run->started_ms);
  const double real_ms = static_cast<double>(job.cost) * run_ms;
  double& share = share_ms_[job.group];
  share = std::max(0.0, share + (real_ms - charged_ms) / weight(job.group));
  std::set<std::string> asking{job.group};
  if (value("fair") == "on") {
    for (const ModelJob& other : jobs_) {
      if (other.state == "pending") asking.insert(other.group);
    }
  }
  double weights = 0;
  for (const std::string& group : asking) weights += weight(group);
  virtual_ms_ =
      std::max(virtual_ms_, std::min(virtual_ms_ + real_ms / weights, received_ms(job.group)));
}

// After each 100 completions, adapts to the mean of the last runs.
void QueueModel::adapt() {
  if (value("adaptive").empty() || ++completions_ < 100) return;
  completions_ = 0;
  const std::vector<int64_t> bounds = numbers("adaptive");
  double mean_ms = 0;
  for (const int64_t run_ms : runs_ms_) mean_ms += static_cast<double>(run_ms);
  mean_ms /= static_cast<double>(runs_ms_.size());
  if (mean_ms > static_cast<double>(bounds[3])) adaptive_max_ -= bounds[4];
  if (mean_ms < static_cast<double>(bounds[2])) adaptive_max_ += bounds[4];
  adaptive_max_ = std::clamp(adaptive_max_, bounds[0], bounds[1]);
}

// A share is forgotten with its group's last job.
void QueueModel::forget_shares() {
  std::erase_if(share_ms_, [&](const auto& share) {
    return std::none_of(jobs_.begin(), jobs_.end(),
                        [&](const ModelJob& job) { return job.group == share.first; });
  });
}

}  // namespace sluice::test
