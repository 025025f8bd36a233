#include "engine/queue/queue_config.h"

#include <algorithm>
#include <tuple>

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

const QueueValues& default_values() {
  static const QueueValues values = [] {
    QueueValues made;
    std::vector<ConfigField> none;
    read_fields(none, made);
    return made;
  }();
  return values;
}

// --- Globs ---

bool is_glob(Bytes pattern) { return pattern.find_first_of("*?[\\") != Bytes::npos; }

// Bytes of a glob that stand for themselves.
size_t literal_bytes(Bytes pattern) {
  size_t count = 0;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '*' || pattern[i] == '?') continue;
    if (pattern[i] == '[') {
      // As glob_match reads it: to the first `]`, with `\` before a byte that is no end.
      for (++i; i < pattern.size() && pattern[i] != ']'; ++i) {
        if (pattern[i] == '\\') ++i;
      }
      continue;
    }
    if (pattern[i] == '\\' && i + 1 < pattern.size()) ++i;
    ++count;
  }
  return count;
}

}  // namespace

QueueConfig::QueueConfig() : values_(default_values()) {}

const QueueConfig::Rule* QueueConfig::find_rule(ConfigLevel level, Bytes pattern) const {
  const Rules& rules = rules_of(level);
  const Patterns& patterns = is_glob(pattern) ? rules.globs : rules.names;
  const auto found = patterns.find(pattern);
  return found == patterns.end() ? nullptr : &found->second;
}

// The bands that rules name may have been taken away by a new `bands`: true if all of them can
// still be read.
bool QueueConfig::rules_are_readable(const QueueValues& values) const {
  QueueValues scratch = values;
  const Rules& rules = rules_of(ConfigLevel::kGroup);
  for (const Patterns* patterns : {&rules.names, &rules.globs}) {
    for (const auto& [pattern, rule] : *patterns) {
      for (const auto& [name, text] : rule.fields) {
        Reading reading{text, scratch, {}};
        if (!find_field(name, ConfigLevel::kGroup)->read(reading)) return false;
      }
    }
  }
  return true;
}

std::string QueueConfig::set(ConfigLevel level, Bytes pattern,
                             std::span<const std::pair<Bytes, Bytes>> fields) {
  std::vector<ConfigField> changed = recorded(level, pattern);
  std::vector<Bytes> given;
  for (const auto& [name, text] : fields) {
    const Field* field = find_field(name, level);
    if (field == nullptr || contains(given, name)) return std::string(name);
    given.push_back(name);
    put_text(changed, field->name, text);
  }
  if (level == ConfigLevel::kQueue) return set_queue(std::move(changed), given);
  QueueValues scratch = values_;
  for (auto& [name, text] : changed) {
    Reading reading{text, scratch, {}};
    if (!find_field(name, level)->read(reading)) return name;
    text = std::move(reading.canonical);
  }
  if (!fields.empty()) put_rule(level, pattern, std::move(changed));
  return {};
}

std::string QueueConfig::set_queue(std::vector<ConfigField> changed, std::span<const Bytes> given) {
  QueueValues values;
  const Bytes bad = read_fields(changed, values);
  if (contains(given, bad)) return std::string(bad);
  // A value from before that has become bad is the fault of what gives bands their names.
  if (!bad.empty() || (!rules_are_readable(values) && rules_are_readable(values_))) {
    return contains(given, "bands") ? "bands" : "priority_order";
  }
  fields_ = std::move(changed);
  values_ = std::move(values);
  return {};
}

void QueueConfig::put_rule(ConfigLevel level, Bytes pattern, std::vector<ConfigField> fields) {
  Rules& rules = rules_of(level);
  Patterns& patterns = is_glob(pattern) ? rules.globs : rules.names;
  const std::string name(pattern);
  if (fields.empty()) {
    patterns.erase(name);
  } else {
    patterns[name] = {++last_change_, std::move(fields)};
  }
}

void QueueConfig::reset(ConfigLevel level, Bytes pattern) { apply(level, pattern, {}); }

void QueueConfig::apply(ConfigLevel level, Bytes pattern, std::span<const ConfigField> fields) {
  std::vector<ConfigField> known;
  for (const ConfigField& field : fields) {
    if (find_field(field.first, level) != nullptr) known.push_back(field);
  }
  if (level != ConfigLevel::kQueue) return put_rule(level, pattern, std::move(known));
  fields_ = std::move(known);
  read_fields(fields_, values_);
}

std::vector<ConfigField> QueueConfig::get(ConfigLevel level, Bytes pattern,
                                          std::span<const Bytes> names, std::string& bad) const {
  for (const Bytes name : names) {
    if (find_field(name, level) != nullptr) continue;
    bad = name;
    return {};
  }
  const std::vector<ConfigField> given = recorded(level, pattern);
  std::vector<ConfigField> found;
  for (const Field& field : config_fields()) {
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

// Reads into `values`, for each field that rules of this level set, the text that counts.
void QueueConfig::resolve(ConfigLevel level, Bytes name, QueueValues& values) const {
  struct Winner {
    size_t strength = 0;
    uint64_t changed = 0;
    const std::string* text = nullptr;
  };
  std::array<Winner, kConfigFields> winners;
  const auto offer = [&](const Rule& rule, size_t strength) {
    for (const ConfigField& field : rule.fields) {
      Winner& winner =
          winners[static_cast<size_t>(find_field(field.first, level) - config_fields().data())];
      if (winner.text != nullptr &&
          std::tie(winner.strength, winner.changed) > std::tie(strength, rule.changed)) {
        continue;
      }
      winner = {strength, rule.changed, &field.second};
    }
  };
  for (const auto& [glob, rule] : rules_of(level).globs) {
    if (glob_match(glob, name)) offer(rule, literal_bytes(glob));
  }
  if (const Rule* exact = find_rule(level, name)) offer(*exact, SIZE_MAX);
  for (size_t i = 0; i < winners.size(); ++i) {
    if (winners[i].text == nullptr) continue;
    Reading reading{*winners[i].text, values, {}};
    if (config_fields()[i].read(reading)) continue;
    // Its band has gone with a RESET of the queue: as if it were not set.
    values.order = values_.order;
  }
}

GroupConfig QueueConfig::group(Bytes name) const {
  GroupConfig config{{}, values_.ttl_ms, values_.order, values_.weight};
  if (name.empty() || rules_of(ConfigLevel::kGroup).empty()) return config;
  QueueValues values = values_;
  values.limits = {};
  resolve(ConfigLevel::kGroup, name, values);
  return {values.limits, values.ttl_ms, values.order, values.weight};
}

Limits QueueConfig::key(Bytes name) const {
  if (rules_of(ConfigLevel::kKey).empty()) return {};
  QueueValues values = values_;
  values.limits = {};
  resolve(ConfigLevel::kKey, name, values);
  return values.limits;
}

// --- Bands ---

bool QueueConfig::parse_band(Bytes text, uint8_t& band) const {
  std::string canonical;
  return read_band(text, values_, band, canonical);
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
  for (const ConfigLevel level : {ConfigLevel::kGroup, ConfigLevel::kKey}) {
    const Rules& rules = rules_of(level);
    for (const auto& [name, rule] : rules.names) all.emplace_back(level, name);
    // What is recorded later counts more, so globs go in the order of their changes.
    std::map<uint64_t, const std::string*> ordered;
    for (const auto& [glob, rule] : rules.globs) ordered.emplace(rule.changed, &glob);
    for (const auto& [changed, glob] : ordered) all.emplace_back(level, *glob);
  }
  return all;
}

std::vector<ConfigField> QueueConfig::recorded(ConfigLevel level, Bytes pattern) const {
  if (level == ConfigLevel::kQueue) return fields_;
  const Rule* rule = find_rule(level, pattern);
  return rule == nullptr ? std::vector<ConfigField>() : rule->fields;
}

size_t QueueConfig::memory_bytes() const {
  const auto fields_bytes = [](const std::vector<ConfigField>& fields) {
    size_t bytes = fields.capacity() * sizeof(ConfigField);
    for (const auto& [name, text] : fields) bytes += name.capacity() + text.capacity();
    return bytes;
  };
  size_t bytes = fields_bytes(fields_) + values_.bands.capacity() * sizeof(values_.bands[0]);
  constexpr size_t kNodeBytes = 4 * sizeof(void*) + sizeof(Patterns::value_type);
  for (const Rules& rules : rules_) {
    for (const Patterns* patterns : {&rules.names, &rules.globs}) {
      for (const auto& [pattern, rule] : *patterns) {
        bytes += kNodeBytes + pattern.capacity() + fields_bytes(rule.fields);
      }
    }
  }
  return bytes;
}

}  // namespace sluice
