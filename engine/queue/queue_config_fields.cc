#include "engine/queue/queue_config_fields.h"

#include <algorithm>
#include <optional>
#include <type_traits>

#include "engine/base/characters.h"
#include "engine/base/check.h"
#include "engine/base/numbers.h"

namespace sluice {

namespace {

constexpr uint64_t kMaxCount = uint64_t{1} << 50;
constexpr uint64_t kMaxMs = kMaxDurationMs;
constexpr uint64_t kMaxTries = 10000;
constexpr uint64_t kMaxLogBytes = 1 << 20;
constexpr double kMinWeight = 1e-6;
constexpr double kMaxWeight = 1e6;
constexpr size_t kMaxBandName = 64;
constexpr uint8_t kLeastUrgent = kBands - 1;

// --- Texts ---

std::string number_text(uint64_t value) {
  char text[kMaxIntegerText];
  return {text, format_i64(text, static_cast<int64_t>(value))};
}

std::optional<uint64_t> read_number(Bytes text, uint64_t min, uint64_t max) {
  const auto number = parse_u64(text);
  return number && *number >= min && *number <= max ? number : std::nullopt;
}

// Takes the text up to the next `separator`, or all of it.
Bytes take_part(Bytes& text, char separator) {
  const size_t end = std::min(text.find(separator), text.size());
  const Bytes part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

// Parses numbers separated by colons, at least `needed` of them. Missing ones keep their values.
struct NumberPart {
  uint64_t* value;
  uint64_t min;
  uint64_t max;
};
bool read_parts(Bytes text, std::span<const NumberPart> parts, size_t needed) {
  size_t given = static_cast<size_t>(std::count(text.begin(), text.end(), ':')) + 1;
  if (given < needed || given > parts.size()) return false;
  for (size_t i = 0; i < given; ++i) {
    const auto number = read_number(take_part(text, ':'), parts[i].min, parts[i].max);
    if (!number) return false;
    *parts[i].value = *number;
  }
  return true;
}

std::string parts_text(std::initializer_list<uint64_t> values) {
  std::string text;
  for (const uint64_t value : values) {
    if (!text.empty()) text += ':';
    text += number_text(value);
  }
  return text;
}

constexpr Bytes kAscDesc[] = {"asc", "desc"};
constexpr Bytes kFifoLifo[] = {"fifo", "lifo"};
constexpr Bytes kOffOn[] = {"off", "on"};
constexpr Bytes kPauses[] = {"none", "in", "out", "all"};
constexpr Bytes kRejectDisplace[] = {"reject", "displace"};

// The position of a text among some words, or -1.
int read_word(Bytes text, std::span<const Bytes> words) {
  for (size_t at = 0; at < words.size(); ++at) {
    if (equals_ignore_case(text, words[at])) return static_cast<int>(at);
  }
  return -1;
}

// --- Bands ---

// A name begins with a letter, so that it is not a number, and has none of the separators of other
// fields.
bool is_band_name(Bytes name) {
  if (name.empty() || name.size() > kMaxBandName || !is_letter(name.front())) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return is_letter_or_digit(c) || c == '_' || c == '-' || c == '.';
  });
}

uint8_t stored_band(uint64_t number, bool descending) {
  return static_cast<uint8_t>(descending ? kLeastUrgent - number : number);
}

}  // namespace

std::optional<NamedBand> read_band(Bytes text, const QueueValues& values) {
  if (const auto number = read_number(text, 0, kBands - 1)) {
    return NamedBand{stored_band(*number, values.descending), number_text(*number)};
  }
  for (const auto& [name, stored] : values.bands) {
    if (equals_ignore_case(name, text)) return NamedBand{stored, name};
  }
  return std::nullopt;
}

namespace {

// `NAME,NAME=number,...`: from the most urgent to the least. A name without a number is one less
// urgent than the one before it; the first is number 0. With `priority_order desc` it is one more
// urgent than the next one; the last is number 0.
bool read_bands(Reading& reading) {
  if (reading.text.empty()) return false;
  std::vector<std::pair<Bytes, std::optional<uint64_t>>> given;
  for (Bytes rest = reading.text; !rest.empty();) {
    const bool comma_at_end = rest.back() == ',' && rest.find(',') == rest.size() - 1;
    Bytes part = take_part(rest, ',');
    const bool has_number = part.find('=') != Bytes::npos;
    const Bytes name = take_part(part, '=');
    const auto number = read_number(part, 0, kBands - 1);
    if (has_number != number.has_value() || !is_band_name(name) || comma_at_end) return false;
    given.emplace_back(name, number);
  }
  const bool descending = reading.values.descending;
  if (descending) std::reverse(given.begin(), given.end());
  auto& bands = reading.values.bands;
  bands.clear();
  std::vector<std::string> shown;
  uint64_t next = 0;
  for (const auto& [name, number] : given) {
    const uint64_t value = number.value_or(next);
    if (value >= kBands) return false;
    for (const auto& [other, band] : bands) {
      if (equals_ignore_case(other, name) || band == stored_band(value, descending)) return false;
    }
    bands.emplace_back(name, stored_band(value, descending));
    shown.push_back(value == next ? std::string(name)
                                  : std::string(name) + '=' + number_text(value));
    next = value + 1;
  }
  if (descending) std::reverse(shown.begin(), shown.end());
  for (const std::string& one : shown) {
    if (!reading.canonical.empty()) reading.canonical += ',';
    reading.canonical += one;
  }
  std::sort(bands.begin(), bands.end(),
            [](const auto& a, const auto& b) { return a.second < b.second; });
  return true;
}

bool read_default_pri(Reading& reading) {
  const auto band = read_band(reading.text, reading.values);
  if (!band) return false;
  reading.values.default_band = band->stored;
  reading.canonical = band->canonical;
  return true;
}

bool read_order(Reading& reading) {
  Order& order = reading.values.order;
  Bytes rest = reading.text;
  const bool has_band = rest.find(':') != Bytes::npos;
  const int word = read_word(take_part(rest, ':'), kFifoLifo);
  if (word < 0 || (word == 0 && has_band)) return false;
  order.lifo_from = word == 0 ? kBands : 0;
  reading.canonical = word == 0 ? "fifo" : "lifo";
  if (!has_band) return true;
  const auto band = read_band(rest, reading.values);
  if (!band) return false;
  order.lifo_from = band->stored;
  reading.canonical += ':' + band->canonical;
  return true;
}

bool read_reserve(Reading& reading) {
  Reserve& reserve = reading.values.reserve;
  reserve = {};
  reading.canonical = "none";
  if (equals_ignore_case(reading.text, "none")) return true;
  Bytes rest = reading.text;
  const auto band = read_band(take_part(rest, ':'), reading.values);
  const auto slots = read_number(rest, 1, kMaxCount);
  if (!band || !slots) return false;
  reserve = {band->stored, *slots};
  reading.canonical = band->canonical + ':' + number_text(*slots);
  return true;
}

// --- Limits ---

bool read_rate(Reading& reading) {
  Rate& rate = reading.values.limits.rate;
  rate = {};
  reading.canonical = "none";
  if (equals_ignore_case(reading.text, "none") || reading.text == "0") return true;
  Bytes rest = reading.text;
  if (rest.find('/') == Bytes::npos) return false;
  constexpr uint64_t kMaxTokens = 1000000000;
  const auto tokens = read_number(take_part(rest, '/'), 1, kMaxTokens);
  if (!tokens) return false;
  uint64_t interval = 0;
  rate.burst = rate.tokens = *tokens;
  const NumberPart parts[] = {{&interval, 1, kMaxLeaseMs}, {&rate.burst, 1, kMaxTokens}};
  if (!read_parts(rest, parts, 1)) return false;
  rate.interval_ms = static_cast<int64_t>(interval);
  // Limiter counts in microseconds: at most one token in each, and a whole burst added to the time
  // of day must fit into 64 bits.
  if (rate.tokens > interval * 1000) return false;
  if (interval * 1000 / rate.tokens > (uint64_t{1} << 60) / rate.burst) return false;
  reading.canonical = number_text(rate.tokens) + '/' + number_text(interval);
  if (rate.burst != rate.tokens) reading.canonical += ':' + number_text(rate.burst);
  return true;
}

bool read_weight(Reading& reading) {
  const std::optional<double> weight = parse_double(reading.text);
  if (!weight || !(*weight >= kMinWeight && *weight <= kMaxWeight)) return false;
  reading.values.weight = *weight;
  reading.canonical = format_double(*weight);
  return true;
}

bool read_adaptive(Reading& reading) {
  Adaptive& adaptive = reading.values.adaptive;
  adaptive = {};
  reading.canonical = "off";
  if (equals_ignore_case(reading.text, "off")) return true;
  uint64_t low = 0;
  uint64_t high = 0;
  const NumberPart parts[] = {{&adaptive.min, 1, kMaxCount},
                              {&adaptive.max, 1, kMaxCount},
                              {&low, 0, kMaxMs},
                              {&high, 0, kMaxMs},
                              {&adaptive.step, 1, kMaxCount}};
  if (!read_parts(reading.text, parts, 4)) return false;
  if (adaptive.min > adaptive.max || low > high) return false;
  adaptive.low_ms = static_cast<int64_t>(low);
  adaptive.high_ms = static_cast<int64_t>(high);
  reading.canonical = parts_text({adaptive.min, adaptive.max, low, high});
  if (adaptive.step != Adaptive{}.step) reading.canonical += ':' + number_text(adaptive.step);
  return true;
}

bool read_backoff(Reading& reading) {
  uint64_t base = 0;
  uint64_t max = 0;
  const NumberPart parts[] = {{&base, 0, kMaxMs}, {&max, 0, kMaxMs}};
  if (!read_parts(reading.text, parts, 2) || base > max) return false;
  reading.values.backoff_base_ms = static_cast<int64_t>(base);
  reading.values.backoff_max_ms = static_cast<int64_t>(max);
  reading.canonical = parts_text({base, max});
  return true;
}

template <Retention QueueValues::*member, size_t max_parts>
bool read_retention(Reading& reading) {
  Retention& retention = reading.values.*member;
  retention = {};
  uint64_t age = 0;
  const NumberPart parts[] = {
      {&retention.count, 0, kMaxCount}, {&age, 0, kMaxMs}, {&retention.bytes, 0, kMaxCount}};
  if (!read_parts(reading.text, std::span(parts).first(max_parts), 1)) return false;
  retention.age_ms = static_cast<int64_t>(age);
  reading.canonical = number_text(retention.count);
  if (age != 0 || retention.bytes != 0) reading.canonical += ':' + number_text(age);
  if (retention.bytes != 0) reading.canonical += ':' + number_text(retention.bytes);
  return true;
}

// --- Plain numbers and words ---

template <auto member>
auto& member_of(QueueValues& values) {
  if constexpr (requires { values.limits.*member; }) {
    return values.limits.*member;
  } else {
    return values.*member;
  }
}

template <auto member, uint64_t min, uint64_t max>
bool read_plain_number(Reading& reading) {
  const auto number = read_number(reading.text, min, max);
  if (!number) return false;
  auto& value = member_of<member>(reading.values);
  value = static_cast<std::remove_reference_t<decltype(value)>>(*number);
  reading.canonical = number_text(*number);
  return true;
}

template <auto member>
constexpr auto read_count = read_plain_number<member, 0, kMaxCount>;
template <auto member>
constexpr auto read_ms = read_plain_number<member, 0, kMaxMs>;

// The number of a word, as a bool or an enumeration.
template <auto member, const auto& words>
bool read_choice(Reading& reading) {
  const int word = read_word(reading.text, words);
  if (word < 0) return false;
  auto& value = member_of<member>(reading.values);
  value = static_cast<std::remove_reference_t<decltype(value)>>(word);
  reading.canonical = words[word];
  return true;
}
template <bool QueueValues::*member>
constexpr auto read_switch = read_choice<member, kOffOn>;

// --- The table ---

constexpr unsigned level_bit(ConfigLevel level) { return 1U << static_cast<unsigned>(level); }
constexpr unsigned kQ = level_bit(ConfigLevel::kQueue);
constexpr unsigned kG = kQ | level_bit(ConfigLevel::kGroup);
constexpr unsigned kGK = kG | level_bit(ConfigLevel::kKey);
constexpr unsigned kW = level_bit(ConfigLevel::kWorker);

template <auto member>
void copy_value(const GroupConfig& from, GroupConfig& to) {
  if constexpr (std::is_member_object_pointer_v<decltype(member)> &&
                requires { from.limits.*member; }) {
    to.limits.*member = from.limits.*member;
  } else {
    to.*member = from.*member;
  }
}

constexpr ConfigRow kFields[kConfigFields] = {
    {"priority_order", kQ, "asc", read_choice<&QueueValues::descending, kAscDesc>},
    {"bands", kQ, "CRITICAL,HIGH,NORMAL,LOW,BACKGROUND", read_bands},
    {"default_pri", kQ, "2", read_default_pri},
    {"max_active", kGK, "0", read_count<&Limits::max_active>, copy_value<&Limits::max_active>},
    {"max_waiting", kG, "0", read_count<&Limits::max_waiting>, copy_value<&Limits::max_waiting>},
    {"max_total", kG, "0", read_count<&Limits::max_total>, copy_value<&Limits::max_total>},
    {"full", kQ, "reject", read_choice<&QueueValues::displace, kRejectDisplace>},
    {"ttl_ms", kG, "0", read_ms<&QueueValues::ttl_ms>, copy_value<&GroupConfig::ttl_ms>},
    {"order", kG, "fifo", read_order, copy_value<&GroupConfig::order>},
    {"weight", kG, "1", read_weight, copy_value<&GroupConfig::weight>},
    {"fair", kQ, "off", read_switch<&QueueValues::fair>},
    {"aging_ms", kQ, "0", read_ms<&QueueValues::aging_ms>},
    {"reserve", kQ, "none", read_reserve},
    {"adaptive", kQ, "off", read_adaptive},
    {"rate", kGK, "none", read_rate, copy_value<&Limits::rate>},
    {"lease_ms", kQ, "30000", read_plain_number<&QueueValues::lease_ms, kMinLeaseMs, kMaxLeaseMs>},
    {"max_run_ms", kQ, "0", read_ms<&QueueValues::max_run_ms>},
    {"disconnect_grace_ms", kQ, "5000", read_ms<&QueueValues::disconnect_grace_ms>},
    {"retry", kQ, "0", read_plain_number<&QueueValues::retry, 0, kMaxTries>},
    {"crash_limit", kQ, "3", read_plain_number<&QueueValues::crash_limit, 0, kMaxTries>},
    {"backoff", kQ, "1000:300000", read_backoff},
    {"paused", kG, "none", read_choice<&Limits::paused, kPauses>, copy_value<&Limits::paused>},
    {"retain_completed", kQ, "1000:3600000", read_retention<&QueueValues::retain_completed, 3>},
    {"retain_failed", kQ, "10000:604800000:67108864",
     read_retention<&QueueValues::retain_failed, 3>},
    {"events", kQ, "100000:86400000", read_retention<&QueueValues::events, 2>},
    {"max_payload", kQ, "1048576", read_plain_number<&QueueValues::max_payload, 0, kMaxPayload>},
    {"log_bytes", kQ, "16384", read_plain_number<&QueueValues::log_bytes, 0, kMaxLogBytes>},
    {"fencing", kQ, "on", read_switch<&QueueValues::fencing>},
    {"worker_ttl_ms", kQ, "60000", read_ms<&QueueValues::worker_ttl_ms>},
    {"quiet", kW, "off", read_switch<&QueueValues::quiet>, copy_value<&GroupConfig::quiet>},
};

}  // namespace

std::span<const ConfigRow, kConfigFields> config_fields() { return kFields; }

const ConfigRow* find_config_row(Bytes name) {
  for (const ConfigRow& field : kFields) {
    if (equals_ignore_case(field.name, name)) return &field;
  }
  return nullptr;
}

const ConfigRow* find_config_row(Bytes name, ConfigLevel level) {
  const ConfigRow* field = find_config_row(name);
  return field != nullptr && field->stands_at(level) ? field : nullptr;
}

Bytes default_text(const ConfigRow& field, const QueueValues& values) {
  return values.descending && field.name == "default_pri" ? Bytes("0") : field.default_text;
}

GroupConfig shared_values(const QueueValues& values) {
  return {values.limits, values.ttl_ms, values.order, values.weight, values.quiet};
}

Bytes read_fields(std::vector<ConfigField>& given, QueueValues& values) {
  Bytes bad;
  values = {};
  for (const ConfigRow& field : kFields) {
    Reading standard{default_text(field, values), values, {}};
    CHECK(field.read(standard));
    for (ConfigField& one : given) {
      if (one.first != field.name) continue;
      Reading reading{one.second, values, {}};
      if (field.read(reading)) {
        one.second = std::move(reading.canonical);
      } else {
        if (bad.empty()) bad = field.name;
        CHECK(field.read(standard));
      }
    }
  }
  return bad;
}

}  // namespace sluice
