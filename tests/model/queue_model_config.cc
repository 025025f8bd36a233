// QueueModel: configuration, kept as the texts given to Q.CONFIG SET, and words of commands.
#include <algorithm>
#include <sstream>

#include "tests/model/queue_model.h"

namespace sluice::test {

namespace {

const std::map<std::string, std::string> kDefaults = {
    {"max_active", "0"},
    {"max_waiting", "0"},
    {"max_total", "0"},
    {"ttl_ms", "0"},
    {"order", "fifo"},
    {"weight", "1"},
    {"fair", "off"},
    {"aging_ms", "0"},
    {"reserve", ""},
    {"adaptive", ""},
    {"priority_order", "asc"},
    {"disconnect_grace_ms", "5000"},
    {"rate", ""},
    {"default_pri", "2"},
    {"lease_ms", "30000"},
    {"max_run_ms", "0"},
    {"retry", "0"},
    {"crash_limit", "3"},
    {"backoff", "1000:300000"},
    {"paused", "none"},
    {"retain_completed", "1000:3600000"},
    {"retain_failed", "10000:604800000:67108864"},
    {"max_payload", "1048576"},
    {"log_bytes", "16384"},
    {"full", "reject"},
    {"fencing", "on"},
};

bool matches(const char* glob, const char* text) {
  if (*glob == '\0') return *text == '\0';
  if (*glob == '*') return matches(glob + 1, text) || (*text != '\0' && matches(glob, text + 1));
  return *text != '\0' && (*glob == '?' || *glob == *text) && matches(glob + 1, text + 1);
}

size_t literal_bytes(const std::string& glob) {
  return glob.size() - static_cast<size_t>(std::count_if(
                           glob.begin(), glob.end(), [](char c) { return c == '*' || c == '?'; }));
}

// The words of a Q.CONFIG from SET or RESET on.
void change_fields(std::map<std::string, std::string>& fields, const Words& words, size_t at) {
  if (words[at] == "RESET") return fields.clear();
  for (size_t i = at + 1; i + 1 < words.size(); i += 2) fields[words[i]] = words[i + 1];
}

int64_t to_number(const std::string& text) { return std::atoll(text.c_str()); }

}  // namespace

std::string QueueModel::value(const std::string& field) const {
  const auto found = config_.find(field);
  return found != config_.end() ? found->second : kDefaults.at(field);
}

std::string QueueModel::rule_value(const std::vector<Rule>& rules, const std::string& name,
                                   const std::string& field) const {
  std::string best;
  int64_t best_bytes = -1;
  for (const Rule& rule : rules) {  // among equals the later one applies
    const auto found = rule.fields.find(field);
    if (found == rule.fields.end() || !matches(rule.glob.c_str(), name.c_str())) continue;
    const int64_t bytes =
        rule.glob == name ? INT64_MAX : static_cast<int64_t>(literal_bytes(rule.glob));
    if (bytes < best_bytes) continue;
    best_bytes = bytes;
    best = found->second;
  }
  return best;
}

int64_t QueueModel::number(const std::string& field) const { return to_number(value(field)); }

// A limit: the queue's value is not a default for its groups, and the empty group has none.
int64_t QueueModel::group_number(const std::string& group, const std::string& field) const {
  return group.empty() ? 0 : to_number(rule_value(group_rules_, group, field));
}

int64_t QueueModel::key_number(const std::string& key, const std::string& field) const {
  return to_number(rule_value(key_rules_, key, field));
}

bool QueueModel::paused(const std::string& group, const std::string& direction) const {
  const auto says = [&](const std::string& text) { return text == "all" || text == direction; };
  return says(value("paused")) ||
         (!group.empty() && says(rule_value(group_rules_, group, "paused")));
}

bool QueueModel::is_lifo(const ModelJob& job) const {
  std::string order = job.group.empty() ? "" : rule_value(group_rules_, job.group, "order");
  if (order.empty()) order = value("order");
  if (order.substr(0, 4) != "lifo") return false;
  if (order.size() <= 5) return true;
  return job.band >= band_of(static_cast<int>(to_number(order.substr(5))));
}

int QueueModel::default_band() const {
  const bool given = config_.contains("default_pri");
  return band_of(given || !descending() ? static_cast<int>(number("default_pri")) : 0);
}

double QueueModel::weight(const std::string& group) const {
  const std::string text = group.empty() ? "" : rule_value(group_rules_, group, "weight");
  return std::atof((text.empty() ? value("weight") : text).c_str());
}

int64_t QueueModel::group_ttl(const std::string& group) const {
  const std::string text = group.empty() ? "" : rule_value(group_rules_, group, "ttl_ms");
  return to_number(text.empty() ? value("ttl_ms") : text);
}

bool QueueModel::is_reserved_against(int band) const {
  return !value("reserve").empty() && band > band_of(static_cast<int>(numbers("reserve")[0]));
}

std::vector<int64_t> QueueModel::numbers(const std::string& field) const {
  std::vector<int64_t> out;
  std::istringstream parts(value(field));
  for (std::string part; std::getline(parts, part, ':');) out.push_back(to_number(part));
  out.resize(std::max<size_t>(out.size(), 3));
  return out;
}

// PAUSED, QFULL, GROUPFULL, in this order; empty if there is room.
std::string QueueModel::check_limits(const ModelAdd& spec) {
  const std::string group = spec.group.value_or("");
  if (paused(group, "in")) return "PAUSED direction=in";
  const auto full = [](int64_t limit, int64_t count) { return limit != 0 && count >= limit; };
  const bool queue_full = full(number("max_waiting"), waiting(nullptr)) ||
                          full(number("max_total"), waiting(nullptr) + active(nullptr));
  // No job is displaced for one that could not run either.
  const bool blocked =
      std::any_of(spec.needs.begin(), spec.needs.end(),
                  [&](const auto& need) { return find(need)->state != "completed"; }) ||
      std::any_of(spec.afters.begin(), spec.afters.end(),
                  [&](const auto& id) { return !find(id)->terminal(); });
  const int band = spec.band.value_or(default_band());
  const bool displaces = value("full") == "displace" && !blocked && last_below(band) != nullptr;
  if (queue_full && !displaces) return "QFULL *";
  const std::string refused = check_group(group);
  if (refused.empty() && queue_full) finish(*last_below(band), "cancelled", "displaced");
  return refused;
}

// The group's error for a new job.
std::string QueueModel::check_group(const std::string& group) const {
  if (group.empty()) return "";
  const std::string pause = rule_value(group_rules_, group, "paused");
  if (pause == "in" || pause == "all") return "PAUSED direction=in";
  const auto full = [&](const char* limit, int64_t count) {
    const int64_t most = group_number(group, limit);
    return most != 0 && count >= most;
  };
  if (full("max_waiting", waiting(&group))) {
    return "GROUPFULL group=" + group + " limit=max_waiting *";
  }
  if (full("max_total", waiting(&group) + active(&group))) {
    return "GROUPFULL group=" + group + " limit=max_total *";
  }
  return "";
}

// Whether the cost exceeds a cap in any case; one slot is never too many.
bool QueueModel::too_large(const ModelAdd& spec) const {
  const int64_t cost = spec.cost.value_or(1);
  if (cost == 1) return false;
  const auto above = [](int64_t slots, int64_t cap) { return cap != 0 && slots > cap; };
  const int64_t cap = value("adaptive").empty() ? number("max_active") : numbers("adaptive")[0];
  const int64_t kept =
      is_reserved_against(spec.band.value_or(default_band())) ? numbers("reserve")[1] : 0;
  if (above(cost + kept, cap)) return true;
  if (above(cost, group_number(spec.group.value_or(""), "max_active"))) return true;
  return std::any_of(spec.keys.begin(), spec.keys.end(), [&](const std::string& key) {
    return above(cost, key_number(key, "max_active"));
  });
}

// Q.CONFIG queue [GROUP glob | KEY glob] SET field value ... (valid ones only)
RespValue QueueModel::configure(const Words& words) {
  exists = true;
  tick();
  size_t at = 2;
  if (words[at] == "GROUP" || words[at] == "KEY" || words[at] == "WORKER") {
    std::vector<Rule>* rules = words[at] == "GROUP" ? &group_rules_
                               : words[at] == "KEY" ? &key_rules_
                                                    : &worker_rules_;
    const std::string glob = words[at + 1];
    const auto old = std::find_if(rules->begin(), rules->end(),
                                  [&](const Rule& rule) { return rule.glob == glob; });
    Rule rule{glob, {}};
    if (old != rules->end()) rule = *old;
    at += 2;
    const auto before = rule.fields;
    change_fields(rule.fields, words, at);
    // A rule that has not changed keeps its place in the order.
    if (rule.fields != before) {
      if (old != rules->end()) rules->erase(old);
      rules->push_back(rule);
    }
    if (rules == &worker_rules_) return RespValue::of("OK");
  } else {
    change_fields(config_, words, at);
  }
  if (value("adaptive").empty()) {
    adaptive_max_ = 0;
  } else {
    const std::vector<int64_t> bounds = numbers("adaptive");
    if (adaptive_max_ == 0) {
      adaptive_max_ = number("max_active") != 0 ? number("max_active") : bounds[1];
    }
    adaptive_max_ = std::clamp(adaptive_max_, bounds[0], bounds[1]);
  }
  bound_rates();
  drop_retained();
  return RespValue::of("OK");
}

ModelPop parse_model_pop(const Words& words, size_t from) {
  ModelPop spec;
  for (size_t i = from; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "TIED" || word == "BRIEF") {
      (word == "TIED" ? spec.tied : spec.brief) = true;
      continue;
    }
    const std::string& argument = words.at(++i);
    if (word == "WORKER") spec.worker = argument;
    if (word == "COUNT") spec.count = static_cast<size_t>(to_number(argument));
    if (word == "BLOCK") spec.block_ms = to_number(argument);
    if (word == "LEASE") spec.lease_ms = to_number(argument);
    if (word == "CAP") spec.cap = to_number(argument);
    if (word == "ID") spec.id = argument;
    if (word == "MATCH") spec.match.insert(argument);
    if (word == "REQID") spec.request = argument;
    if (word == "WITH") spec.with.insert(argument);
  }
  return spec;
}

namespace {

bool is_in(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

}  // namespace

ModelAdd parse_model_add(const Words& words) {
  ModelAdd spec;
  spec.id = words.at(2);
  spec.payload = words.at(3);
  for (size_t i = 4; i < words.size(); i += 2) {
    const std::string& word = words[i];
    const std::string& argument = words.at(i + 1);
    const int64_t number = to_number(argument);
    if (word == "PRI") spec.band = static_cast<int>(number);
    if (word == "BOOST") spec.boost_ms = number;
    if (word == "DELAY") spec.delay_ms = number;
    if (word == "AT") spec.at_ms = number;
    if (word == "GROUP") spec.group = argument;
    if (word == "KEY") spec.keys.insert(argument);
    if (word == "COST") spec.cost = number;
    if (word == "TTL") spec.options.ttl_ms = number;
    if (word == "LEASE") spec.options.lease_ms = number;
    if (word == "MAXRUN") spec.options.max_run_ms = number;
    if (word == "RETRY") spec.options.retry = number;
    if (word == "IFDUP") spec.mode = argument;
    if (word == "NEED") spec.needs.push_back(argument);
    if (word == "AFTER" && !is_in(spec.afters, argument)) spec.afters.push_back(argument);
    if (word == "BACKOFF") {
      spec.options.backoff_ms = std::pair(number, to_number(words.at(i + 2)));
      ++i;
    }
    if (word == "TAG") {
      spec.options.tags.emplace_back(argument, words.at(i + 2));
      ++i;
    }
  }
  std::erase_if(spec.afters, [&](const std::string& id) { return is_in(spec.needs, id); });
  return spec;
}

}  // namespace sluice::test
