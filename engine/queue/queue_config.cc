#include "engine/queue/queue_config.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include "engine/base/glob_literal.h"
#include "engine/base/numbers.h"
#include "engine/queue/queue_config_fields.h"

namespace sluice {

namespace {

const std::string* find_text(std::span<const ConfigField> fields, Bytes name) {
  for (const ConfigField& field : fields) {
    if (field.first == name) return &field.second;
  }
  return nullptr;
}

void put_text(std::vector<ConfigField>& fields, Bytes name, Bytes text) {
  for (ConfigField& field : fields) {
    if (field.first != name) continue;
    field.second = text;
    return;
  }
  fields.emplace_back(name, text);
}

bool contains(std::span<const Bytes> names, Bytes name) {
  return std::any_of(names.begin(), names.end(),
                     [&](Bytes other) { return equals_ignore_case(other, name); });
}

// A field's name in an error, in which an empty text would say that all is well.
std::string shown_name(Bytes name) { return name.empty() ? "\"\"" : std::string(name); }

const QueueValues& default_values() {
  static const QueueValues values = [] {
    QueueValues made;
    std::vector<ConfigField> none;
    read_fields(none, made);
    return made;
  }();
  return values;
}

bool have_other_bands(const QueueValues& a, const QueueValues& b) {
  return a.bands != b.bands || a.descending != b.descending;
}

// The last changed glob wins, so they are recorded and listed in the order of their changes.
template <class Patterns>
auto in_order_of_change(const Patterns& globs, uint64_t after) {
  std::map<uint64_t, const typename Patterns::value_type*> ordered;
  for (const auto& rule : globs) {
    if (rule.second.changed > after) ordered.emplace(rule.second.changed, &rule);
  }
  return ordered;
}

}  // namespace

QueueConfig::QueueConfig() : values_(default_values()) {}

const QueueConfig::Rule* QueueConfig::find_rule(ConfigLevel level, Bytes pattern) const {
  const Rules& rules = rules_of(level);
  const std::optional<std::string> name = glob_literal(pattern);
  const Patterns& patterns = name ? rules.names : rules.globs;
  const auto found = patterns.find(name ? Bytes(*name) : pattern);
  return found == patterns.end() ? nullptr : &found->second;
}

// Rules of keys have no field that names bands.
template <class Self, class Visit>
void QueueConfig::for_each_band_rule(Self& self, Visit visit) {
  auto& rules = self.rules_of(ConfigLevel::kGroup);
  for (auto* patterns : {&rules.names, &rules.globs}) {
    for (auto& [pattern, rule] : *patterns) {
      if (find_text(rule.fields, "order") != nullptr) visit(rule);
    }
  }
}

// Parses the texts of a rule. `scratch` holds the bands; the rest of it is overwritten. Returns
// false if a text cannot be parsed because its band no longer exists; that field counts as not set.
bool QueueConfig::read_rule(Rule& rule, QueueValues& scratch) {
  rule.sets = 0;
  for (const auto& [name, text] : rule.fields) {
    const ConfigRow* field = find_config_row(name);
    Reading reading{text, scratch, {}};
    if (field->read(reading)) rule.sets |= 1U << (field - config_fields().data());
  }
  rule.values = shared_values(scratch);
  return static_cast<size_t>(std::popcount(rule.sets)) == rule.fields.size();
}

void QueueConfig::read_rules() {
  QueueValues scratch = values_;
  for_each_band_rule(*this, [&](Rule& rule) { read_rule(rule, scratch); });
}

bool QueueConfig::rules_are_readable(const QueueValues& values) const {
  QueueValues scratch = values;
  bool readable = true;
  for_each_band_rule(*this, [&](const Rule& rule) {
    Rule copy = rule;
    readable = readable && read_rule(copy, scratch);
  });
  return readable;
}

ConfigChange QueueConfig::set(ConfigLevel level, Bytes pattern,
                              std::span<const std::pair<Bytes, Bytes>> fields) {
  Parsed parsed = parse(level, pattern, fields);
  if (level == ConfigLevel::kQueue) return take_queue(std::move(parsed));
  if (!parsed.bad.empty()) return {.bad = std::move(parsed.bad)};
  if (parsed.fields == recorded(level, pattern)) return {};
  return put_rule(level, pattern, std::move(parsed.fields));
}

QueueConfig::Parsed QueueConfig::parse(ConfigLevel level, Bytes pattern,
                                       std::span<const std::pair<Bytes, Bytes>> fields) const {
  std::vector<ConfigField> changed = recorded(level, pattern);
  std::vector<Bytes> given;
  for (const auto& [name, text] : fields) {
    const ConfigRow* field = find_config_row(name, level);
    if (field == nullptr || contains(given, name)) return {.bad = shown_name(name)};
    given.push_back(name);
    put_text(changed, field->name, text);
  }
  if (level == ConfigLevel::kQueue) return parse_queue(std::move(changed), given);
  QueueValues scratch = values_;
  for (auto& [name, text] : changed) {
    Reading reading{text, scratch, {}};
    if (!find_config_row(name, level)->read(reading)) return {.bad = name};
    text = std::move(reading.canonical);
  }
  return {.fields = std::move(changed), .values = std::move(scratch)};
}

QueueConfig::Parsed QueueConfig::parse_queue(std::vector<ConfigField> changed,
                                             std::span<const Bytes> given) const {
  QueueValues values;
  const Bytes bad = read_fields(changed, values);
  if (contains(given, bad)) return {.bad = std::string(bad)};
  const bool other_bands = have_other_bands(values, values_);
  // An old value that has become invalid is the fault of the field that defines the bands.
  if (!bad.empty() || (other_bands && !rules_are_readable(values) && rules_are_readable(values_))) {
    return {.bad = contains(given, "bands") ? "bands" : "priority_order"};
  }
  return {.fields = std::move(changed), .values = std::move(values)};
}

ConfigChange QueueConfig::take_queue(Parsed parsed) {
  if (!parsed.bad.empty()) return {.bad = std::move(parsed.bad)};
  return take_queue(std::move(parsed.fields), std::move(parsed.values));
}

ConfigChange QueueConfig::take_queue(std::vector<ConfigField> fields, QueueValues values) {
  if (fields == fields_) return {};
  const auto inherited = [](const QueueValues& from) {
    return std::tuple(from.ttl_ms, from.order.lifo_from, from.weight, from.fair);
  };
  const bool other_bands = have_other_bands(values, values_);
  const bool for_groups = other_bands || inherited(values) != inherited(values_);
  fields_ = std::move(fields);
  values_ = std::move(values);
  if (other_bands) read_rules();
  if (!for_groups) return {.scope = ConfigScope::kQueue};
  return {.scope = ConfigScope::kLevel, .level = ConfigLevel::kGroup};
}

ConfigChange QueueConfig::put_rule(ConfigLevel level, Bytes pattern,
                                   std::vector<ConfigField> fields) {
  Rules& rules = rules_of(level);
  const std::optional<std::string> name = glob_literal(pattern);
  Patterns& patterns = name ? rules.names : rules.globs;
  const std::string place = name.value_or(std::string(pattern));
  ConfigChange change{.scope = name ? ConfigScope::kName : ConfigScope::kLevel, .level = level};
  if (name) change.name = place;
  auto at = patterns.find(place);
  if (at != patterns.end()) rule_bytes_ -= bytes_of(*at);
  if (fields.empty()) {
    if (at != patterns.end()) patterns.erase(at);
    return change;
  }
  if (at == patterns.end()) at = patterns.try_emplace(place).first;
  Rule& rule = at->second;
  rule.changed = ++last_change_;
  rule.fields = std::move(fields);
  rule.literal_bytes = glob_literal_bytes(pattern);
  rule_bytes_ += bytes_of(*at);
  QueueValues scratch = values_;
  read_rule(rule, scratch);
  return change;
}

ConfigChange QueueConfig::reset(ConfigLevel level, Bytes pattern) {
  constexpr Bytes kNames[] = {"bands"};
  if (level == ConfigLevel::kQueue) return take_queue(parse_queue({}, kNames));
  if (find_rule(level, pattern) == nullptr) return {};
  return put_rule(level, pattern, {});
}

ConfigChange QueueConfig::apply(ConfigLevel level, Bytes pattern,
                                std::span<const ConfigField> fields) {
  std::vector<ConfigField> known;
  for (const ConfigField& field : fields) {
    if (find_config_row(field.first, level) != nullptr) known.push_back(field);
  }
  if (level != ConfigLevel::kQueue) return put_rule(level, pattern, std::move(known));
  QueueValues values;
  read_fields(known, values);
  return take_queue(std::move(known), std::move(values));
}

std::vector<ConfigField> QueueConfig::get(ConfigLevel level, Bytes pattern,
                                          std::span<const Bytes> names, std::string& bad) const {
  for (const Bytes name : names) {
    if (find_config_row(name, level) != nullptr) continue;
    bad = shown_name(name);
    return {};
  }
  const std::vector<ConfigField> given = recorded(level, pattern);
  std::vector<ConfigField> found;
  for (const ConfigRow& field : config_fields()) {
    if (!field.stands_at(level)) continue;
    if (!names.empty() && !contains(names, field.name)) continue;
    if (const std::string* text = find_text(given, field.name)) {
      found.emplace_back(field.name, *text);
    } else if (level == ConfigLevel::kQueue) {
      found.emplace_back(field.name, default_text(field, values_));
    }
  }
  return found;
}

// --- Groups and keys ---

// Sets each field of `config` that rules of this level set to the value that wins.
void QueueConfig::resolve(ConfigLevel level, Bytes name, GroupConfig& config) const {
  std::array<const Rule*, kConfigFields> winners{};
  const auto for_each_field = [](uint32_t sets, auto visit) {
    for (; sets != 0; sets &= sets - 1) visit(static_cast<size_t>(std::countr_zero(sets)));
  };
  uint32_t all = 0;
  for (const auto& [glob, rule] : rules_of(level).globs) {
    if (!glob_match(glob, name)) continue;
    for_each_field(rule.sets, [&, &rule = rule](size_t field) {
      const Rule* other = winners[field];
      if (other != nullptr && std::tie(other->literal_bytes, other->changed) >
                                  std::tie(rule.literal_bytes, rule.changed)) {
        return;
      }
      winners[field] = &rule;
    });
    all |= rule.sets;
  }
  const Patterns& names = rules_of(level).names;
  if (const auto exact = names.find(name); exact != names.end()) {
    for_each_field(exact->second.sets, [&](size_t field) { winners[field] = &exact->second; });
    all |= exact->second.sets;
  }
  for_each_field(
      all, [&](size_t field) { config_fields()[field].copy(winners[field]->values, config); });
}

GroupConfig QueueConfig::group(Bytes name) const {
  GroupConfig config = shared_values(values_);
  config.limits = {};
  if (!name.empty() && !rules_of(ConfigLevel::kGroup).empty()) {
    resolve(ConfigLevel::kGroup, name, config);
  }
  return config;
}

Limits QueueConfig::key(Bytes name) const {
  GroupConfig config;
  if (!rules_of(ConfigLevel::kKey).empty()) resolve(ConfigLevel::kKey, name, config);
  return config.limits;
}

Limits QueueConfig::limits_with(ConfigLevel level, Bytes name, const Parsed& rule) const {
  GroupConfig config;
  config.limits = level == ConfigLevel::kGroup ? group(name).limits : key(name);
  const GroupConfig values = shared_values(rule.values);
  for (const ConfigField& field : rule.fields) find_config_row(field.first)->copy(values, config);
  return config.limits;
}

// --- Workers ---

bool QueueConfig::resolve_quiet(Bytes worker) const {
  GroupConfig config;
  resolve(ConfigLevel::kWorker, worker, config);
  return config.quiet;
}

void QueueConfig::heard(Bytes worker, int64_t now_ms) {
  Patterns& names = rules_of(ConfigLevel::kWorker).names;
  const auto found = names.find(worker);
  if (found != names.end()) found->second.heard_ms = now_ms;
}

int64_t QueueConfig::oldest_heard_ms() const {
  int64_t oldest = INT64_MAX;
  for (const auto& [name, rule] : rules_of(ConfigLevel::kWorker).names) {
    oldest = std::min(oldest, rule.heard_ms);
  }
  return oldest;
}

std::vector<std::string> QueueConfig::silent_workers(int64_t before_ms, int64_t now_ms) {
  std::vector<std::string> silent;
  for (auto& [name, rule] : rules_of(ConfigLevel::kWorker).names) {
    if (rule.heard_ms == 0) rule.heard_ms = now_ms;
    if (rule.heard_ms <= before_ms) silent.push_back(name);
  }
  return silent;
}

// --- Bands ---

std::optional<uint8_t> QueueConfig::parse_band(Bytes text) const {
  const auto band = read_band(text, values_);
  return band ? std::optional(band->stored) : std::nullopt;
}

std::string QueueConfig::band_name(uint8_t band) const {
  for (const auto& [name, stored] : values_.bands) {
    if (stored == band) return name;
  }
  return std::to_string(band_number(band));
}

// --- For the journal ---

std::vector<std::pair<ConfigLevel, std::string>> QueueConfig::rules() const {
  std::vector<std::pair<ConfigLevel, std::string>> all;
  if (!fields_.empty()) all.emplace_back(ConfigLevel::kQueue, std::string());
  for (const ConfigLevel level : {ConfigLevel::kGroup, ConfigLevel::kKey, ConfigLevel::kWorker}) {
    const Rules& rules = rules_of(level);
    for (const auto& [name, rule] : rules.names) all.emplace_back(level, glob_escape(name));
    for (const auto& [changed, rule] : in_order_of_change(rules.globs, 0)) {
      all.emplace_back(level, rule->first);
    }
  }
  return all;
}

std::vector<ConfigField> QueueConfig::recorded(ConfigLevel level, Bytes pattern) const {
  if (level == ConfigLevel::kQueue) return fields_;
  const Rule* rule = find_rule(level, pattern);
  return rule == nullptr ? std::vector<ConfigField>() : rule->fields;
}

// The parts are names and globs of each level. A cursor is the part and the last rule in it: its
// name, or the number of a glob's change.
bool QueueConfig::list_rules(std::string& cursor, size_t count,
                             std::vector<ListedRule>& page) const {
  constexpr char kFirstPart = 'a';
  const size_t parts = rules_.size() * 2;
  const bool begins = cursor == "0";
  const size_t first = begins || cursor.empty() ? 0 : static_cast<size_t>(cursor[0] - kFirstPart);
  if (cursor.empty() || first >= parts) return false;
  const std::string last = begins ? "" : cursor.substr(1);
  for (size_t part = first; part < parts; ++part) {
    const auto level = static_cast<ConfigLevel>(part / 2 + 1);
    const bool is_names = part % 2 == 0;
    const std::string from = part == first ? last : "";
    const auto add = [&](const std::string& glob, const Rule& rule, const std::string& place) {
      if (page.size() == count) return false;
      page.push_back({level, glob, rule.fields});
      cursor = static_cast<char>(kFirstPart + part) + place;
      return true;
    };
    if (is_names) {
      const Patterns& names = rules_of(level).names;
      for (auto at = names.upper_bound(from); at != names.end(); ++at) {
        if (!add(glob_escape(at->first), at->second, at->first)) return true;
      }
      continue;
    }
    const auto after = from.empty() ? 0 : parse_u64(from);
    if (!after) return false;
    for (const auto& [changed, rule] : in_order_of_change(rules_of(level).globs, *after)) {
      if (!add(rule->first, rule->second, std::to_string(changed))) return true;
    }
  }
  cursor = "0";
  return true;
}

bool QueueConfig::has_rates() const {
  const auto sets_rate = [](const Patterns::value_type& rule) {
    return find_text(rule.second.fields, "rate") != nullptr;
  };
  return std::any_of(rules_.begin(), rules_.end(), [&](const Rules& rules) {
    return std::any_of(rules.names.begin(), rules.names.end(), sets_rate) ||
           std::any_of(rules.globs.begin(), rules.globs.end(), sets_rate);
  });
}

namespace {

size_t bytes_of(const std::vector<ConfigField>& fields) {
  size_t bytes = fields.size() * sizeof(ConfigField);
  for (const auto& [name, text] : fields) bytes += name.size() + text.size();
  return bytes;
}

}  // namespace

size_t QueueConfig::bytes_of(const Patterns::value_type& rule) {
  constexpr size_t kNodeBytes = 4 * sizeof(void*) + sizeof(Patterns::value_type);
  return kNodeBytes + rule.first.size() + sluice::bytes_of(rule.second.fields);
}

size_t QueueConfig::memory_bytes() const {
  return sluice::bytes_of(fields_) + values_.bands.capacity() * sizeof(values_.bands[0]) +
         rule_bytes_;
}

}  // namespace sluice
