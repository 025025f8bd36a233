#include "engine/queue/field_help.h"

#include <algorithm>

#include "engine/base/durations.h"
#include "engine/base/edit_distance.h"
#include "engine/base/limits.h"
#include "engine/base/numbers.h"
#include "engine/queue/queue_config_fields.h"
#include "engine/queue/queue_error.h"

namespace sluice {

namespace {

constexpr Bytes kCount = "a number, 0 for no limit";
constexpr Bytes kDuration = "milliseconds, or with a unit (250ms, 5s), up to 36600d";
constexpr Bytes kBand = "a band by its name or number";
constexpr Bytes kSwitch = "off on";

constexpr FieldHelp kConfigFieldHelp[] = {
    {"priority_order", "asc or desc", "asc desc",
     "asc: band 0 is the most urgent; desc: larger numbers are more urgent"},
    {"bands", "NAME[=N],...", "", "names of bands, from the most urgent to the least"},
    {"default_pri", kBand, "", "the band of jobs added without PRI"},
    {"max_active", kCount, "", "the most slots in use at once"},
    {"max_waiting", kCount, "", "the most waiting jobs"},
    {"max_total", kCount, "", "the most waiting and active jobs"},
    {"full", "reject or displace", "reject displace",
     "displace: a new job replaces the last job of a less urgent band"},
    {"ttl_ms", kDuration, "", "how long a job may be pending; 0: no limit", 0b1},
    {"order", "fifo, lifo or lifo:BAND", "fifo lifo",
     "the order in a group; with a band, more urgent bands stay fifo"},
    {"weight", "a number from 0.000001 to 1000000", "", "the share of a group with fair on"},
    {"fair", "off or on", kSwitch, "on: the group that has received the smallest share goes first"},
    {"aging_ms", kDuration, "", "the waiting time that makes a job one band more urgent; 0: never",
     0b1},
    {"reserve", "none or BAND:SLOTS", "none",
     "the number of slots that less urgent bands leave free"},
    {"adaptive", "off or MIN:MAX:LOW_MS:HIGH_MS[:STEP]", "off",
     "moves the cap on slots by the mean of the last 100 runs", 0b1100},
    {"rate", "none or N/MS[:BURST], such as 20/1000 or 20/1s:40", "none",
     "the most jobs that start in an interval", 0b10},
    {"lease_ms", "milliseconds from 100 to 604800000, or a number with a unit (30s)", "",
     "the term of leases", 0b1},
    {"max_run_ms", kDuration, "", "the longest run; 0: no limit", 0b1},
    {"disconnect_grace_ms", kDuration, "", "how long a tied lease outlives its connection", 0b1},
    {"retry", "a number up to 10000", "", "the number of retries after failures"},
    {"crash_limit", "a number up to 10000", "", "how often the lease of a job may expire"},
    {"backoff", "BASE:MAX in milliseconds or with units (1s:5m)", "", "the delay before a retry",
     0b11},
    {"paused", "none, in, out or all", "none in out all",
     "in: no jobs are added; out: no jobs are started"},
    {"retain_completed", "COUNT[:MS[:BYTES]], such as 1000:1h", "",
     "how many completed and cancelled jobs are retained, and for how long", 0b10},
    {"retain_failed", "COUNT[:MS[:BYTES]], such as 10000:7d", "",
     "the same for failed and expired jobs", 0b10},
    {"events", "COUNT[:MS], such as 100000:1d", "",
     "how many events are retained, and for how long", 0b10},
    {"max_payload", "bytes, up to 536870912", "", "the largest payload"},
    {"log_bytes", "bytes, up to 1048576", "", "the most that is kept of a job's log; 0: none"},
    {"fencing", "on or off", "on off", "off: * is accepted in place of a lease"},
    {"worker_ttl_ms", kDuration, "", "how long a worker without a lease is shown", 0b1},
};
// The one field of rules for workers.
constexpr FieldHelp kQuiet = {"quiet", "off or on", kSwitch, "on: the workers get no new jobs"};

constexpr FieldHelp kOptions[] = {
    {"state", "a state", kStateWords, ""},
    {"by", "an order", "rank age deadline dispatch", ""},
    {"ifdup", "error, keep, update or replace", "error keep update replace", ""},
    {"type", "the type of an event",
     "added updated moved forgotten ready started completed failed cancelled expired retrying "
     "returned reclaimed signalled progress",
     ""},
    {"with", "payload, result or options", "payload result options", ""},
    {"id", "1 to 512 bytes, except for the words *, WHERE and ALL", "", ""},
    {"need", "the id of a job, at most 64 of them", "", ""},
    {"after", "the id of a job, at most 64 of them with those of needs", "", ""},
    {"key", "1 to 512 bytes, at most 4 of them", "", ""},
    {"group", "a name of at most 512 bytes", "", ""},
    {"worker", "a name of 1 to 512 bytes", "", ""},
    {"match", "1 to 512 bytes, at most 64 of them", "", ""},
    {"reqid", "1 to 512 bytes", "", ""},
    {"idpart", "1 to 512 bytes", "", ""},
    {"error", "1 to 512 bytes", "", ""},
    {"payload", "1 to 512 bytes", "", ""},
    {"pattern", "at most 512 bytes", "", ""},
    {"since", "unix milliseconds", "", ""},
    {"until", "unix milliseconds", "", ""},
    {"tag", "a name and a value of at most 512 bytes", "", ""},
    {"cost", "slots from 1 to 1000000, and no more than the caps allow", "", ""},
    {"lease", "milliseconds from 100 to 604800000, or a number with a unit (30s)", "", ""},
    {"count", "a number from 1 to 1000, for pops to 256", "", ""},
    {"limit", "a number from 1 to 1000", "", ""},
    {"cap", "a number of at least 1", "", ""},
    {"retry", "a number up to 65535", "", ""},
    {"backoff", "a base and a maximum, no smaller than it, in milliseconds or with units", "", ""},
    {"at", "unix milliseconds", "", ""},
    {"seq", "the number of an event, - or $", "", ""},
    {"window", "milliseconds from 1000 to 60000, or a number with a unit (10s)", "", ""},
};

// What a pop shows besides.
constexpr FieldHelp kPoppedWith = {"with", "tags, progress, error, group or need_results",
                                   "tags progress error group need_results", ""};

// A pop with REQID and without WORKER.
constexpr FieldHelp kReqidWorker = {"worker", "a name of 1 to 512 bytes, and reqid requires one",
                                    "", ""};

// What Q.GET shows besides.
constexpr FieldHelp kGetWith = {"with", "payload, result, options or dependents",
                                "payload result options dependents", ""};

// The jobs whose events are read.
constexpr FieldHelp kFollowedJob = {
    "id", "1 to 512 bytes, except for the words *, WHERE and ALL, at most 256 of them", "", ""};

// The lease that a command names, beside the option of that name.
constexpr FieldHelp kLeaseToken = {
    "lease", "the number of a lease, as the pop gave it, or * with fencing off", "", ""};

constexpr Bytes kDurations[] = {"delay", "boost",   "ttl",   "maxrun", "grace",
                                "older", "maxwait", "block", "wait"};

const FieldHelp* find_help(std::span<const FieldHelp> rows, Bytes name) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const FieldHelp& row) {
    return equals_ignore_case(row.name, name);
  });
  return found == rows.end() ? nullptr : &*found;
}

bool is_command(std::span<const std::string> command, Bytes name) {
  return !command.empty() && equals_ignore_case(command[0], name);
}

// The values that the command gives for the field; a pair is one value.
std::vector<std::string> given_values(Bytes field, std::span<const std::string> command) {
  const bool is_pair = !is_command(command, "Q.CONFIG") &&
                       (equals_ignore_case(field, "tag") || equals_ignore_case(field, "backoff"));
  std::vector<std::string> values;
  for (size_t i = 2; i + 1 < command.size(); ++i) {
    if (!equals_ignore_case(command[i], field)) continue;
    values.push_back(command[++i]);
    if (is_pair && i + 1 < command.size()) values.back() += " " + command[++i];
  }
  return values;
}

bool is_one_of(Bytes value, std::span<const std::string> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& word) { return equals_ignore_case(word, value); });
}

// The value that was refused. Of several it is the first that is not an allowed word; where others
// than words are allowed it cannot be told, and is empty.
std::string refused_value(std::span<const std::string> values,
                          std::span<const std::string> allowed) {
  if (values.size() == 1) return values[0];
  for (const std::string& value : values) {
    // A band may be a number.
    if (!allowed.empty() && !is_one_of(value, allowed) && !parse_u64(value)) return value;
  }
  return {};
}

// The first part of a value that is not an allowed word: BAND:SLOTS and lifo:BAND have two parts.
Bytes misspelt_part(Bytes value, std::span<const std::string> allowed) {
  while (!value.empty()) {
    const Bytes part = value.substr(0, value.find(':'));
    if (!is_one_of(part, allowed)) return part;
    value.remove_prefix(std::min(part.size() + 1, value.size()));
  }
  return {};
}

// The names of the bands by which the command goes: those that it sets, or the queue's.
std::vector<std::string> bands_of(std::span<const std::string> command,
                                  std::span<const std::string> bands) {
  std::vector<std::string> set;
  if (is_command(command, "Q.CONFIG")) set = given_values("bands", command);
  return set.empty() ? std::vector(bands.begin(), bands.end()) : band_names(set[0]);
}

// The level whose fields a Q.CONFIG is about.
ConfigLevel level_of(std::span<const std::string> command) {
  if (command.size() < 3) return ConfigLevel::kQueue;
  if (equals_ignore_case(command[2], "GROUP")) return ConfigLevel::kGroup;
  if (equals_ignore_case(command[2], "KEY")) return ConfigLevel::kKey;
  return equals_ignore_case(command[2], "WORKER") ? ConfigLevel::kWorker : ConfigLevel::kQueue;
}

// Says that the field stands at another level.
FieldAdvice advise_level(Bytes field, ConfigLevel level) {
  static constexpr Bytes kWhose[] = {"the queue", "a rule for groups", "a rule for keys",
                                     "a rule for workers"};
  FieldAdvice advice{std::string(field)};
  for (const ConfigRow& row : config_fields()) {
    if (row.stands_at(level)) advice.allowed.emplace_back(row.name);
  }
  advice.detail =
      std::string(kWhose[static_cast<size_t>(level)]) + " has no field " + std::string(field);
  return advice;
}

// Whether the lease that the command names is no lease; the option LEASE may be another fault.
bool names_no_lease(std::span<const std::string> command) {
  const bool named = command.size() > 3 && (equals_ignore_case(command[0], "Q.ACK") ||
                                            equals_ignore_case(command[0], "Q.NACK") ||
                                            equals_ignore_case(command[0], "Q.TOUCH"));
  if (!named) return false;
  const auto token = parse_i64(command[3]);
  if (command[3] == "*") {
    // Refused with fencing on, if the option is not at fault.
    const auto options = given_values(kLeaseToken.name, command.subspan(2));
    return std::all_of(options.begin(), options.end(), [](const std::string& option) {
      const auto term_ms = parse_i64(option);
      return term_ms && *term_ms >= kMinLeaseMs && *term_ms <= kMaxLeaseMs;
    });
  }
  return !token || *token < 1 || *token > kMaxExact;
}

FieldAdvice advise_name(Bytes field) {
  FieldAdvice advice{std::string(field)};
  for (const FieldHelp& row : kConfigFieldHelp) advice.allowed.emplace_back(row.name);
  advice.nearest = nearest_word(field, advice.allowed);
  advice.detail = "there is no field " + encoded_hint(field);
  return advice;
}

}  // namespace

std::span<const FieldHelp> config_field_help() { return kConfigFieldHelp; }

std::string plain_value(Bytes field, Bytes value) {
  const FieldHelp* row = find_help(kConfigFieldHelp, field);
  return with_plain_durations(value, row == nullptr ? 0 : row->durations);
}

void isolate_if(std::vector<std::string>& fields) {
  for (size_t i = 0; i + 1 < fields.size(); i += 2) {
    if (equals_ignore_case(fields[i], "IF")) fields = {fields[i], fields[i + 1]};
  }
}

bool takes_band(Bytes field) {
  return equals_ignore_case(field, "pri") || equals_ignore_case(field, "default_pri") ||
         equals_ignore_case(field, "order") || equals_ignore_case(field, "reserve");
}

std::string advice_text(const FieldAdvice& advice) {
  std::string text = advice.detail + suggestion(advice.nearest);
  const bool unnamed = advice.detail.find(" takes ") == std::string::npos;
  if (unnamed && !advice.allowed.empty()) {
    text += (advice.nearest.empty() ? "; it takes " : " It takes ") + listed(advice.allowed);
  }
  return text;
}

std::string suggestion(const std::string& nearest) {
  return nearest.empty() ? "" : "; did you mean " + nearest + "?";
}

std::vector<std::string> split_words(Bytes words) {
  std::vector<std::string> split;
  while (!words.empty()) {
    const size_t end = std::min(words.find(' '), words.size());
    if (end != 0) split.emplace_back(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return split;
}

std::vector<std::string> band_names(Bytes bands) {
  std::vector<std::string> names;
  while (!bands.empty()) {
    const size_t end = std::min(bands.find(','), bands.size());
    const Bytes part = bands.substr(0, end);
    names.emplace_back(part.substr(0, part.find('=')));
    bands.remove_prefix(std::min(end + 1, bands.size()));
  }
  return names;
}

std::string listed(std::span<const std::string> words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i != 0) text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

std::string nearest_word(Bytes given, std::span<const std::string> words) {
  constexpr size_t kMost = 2;
  std::string nearest;
  size_t least = kMost + 1;
  for (const std::string& word : words) {
    const size_t away = edit_distance(given, word, kMost);
    // At this distance a word of two letters would be replaced entirely.
    if (away >= least || away >= word.size()) continue;
    least = away;
    nearest = word;
  }
  return nearest;
}

FieldAdvice advise(Bytes field, std::span<const std::string> command,
                   std::span<const std::string> bands, const OptionNames& names) {
  const bool configures = is_command(command, "Q.CONFIG");
  const FieldHelp* row = find_help(configures ? std::span<const FieldHelp>(kConfigFieldHelp)
                                              : std::span<const FieldHelp>(kOptions),
                                   field);
  if (configures && equals_ignore_case(field, kQuiet.name)) row = &kQuiet;
  const bool pops = is_command(command, "Q.POP") || is_command(command, "Q.ACK");
  if (pops && equals_ignore_case(field, kPoppedWith.name)) row = &kPoppedWith;
  if (is_command(command, "Q.GET") && equals_ignore_case(field, kGetWith.name)) row = &kGetWith;
  const bool reads_events = is_command(command, "Q.EVENTS");
  if (reads_events && equals_ignore_case(field, kFollowedJob.name)) row = &kFollowedJob;
  const bool of_rule = equals_ignore_case(field, "group") || equals_ignore_case(field, "key") ||
                       equals_ignore_case(field, "worker");
  if (configures && row == nullptr && !of_rule) return advise_name(field);
  if (configures && row != nullptr && find_config_row(row->name, level_of(command)) == nullptr) {
    return advise_level(row->name, level_of(command));
  }
  const std::vector<std::string> values = given_values(field, command);
  if (configures && row != nullptr && values.size() > 1) {
    return {std::string(field), std::string(field) + " is given twice"};
  }
  if (pops && values.empty() && equals_ignore_case(field, kReqidWorker.name)) row = &kReqidWorker;
  const bool of_token = equals_ignore_case(field, kLeaseToken.name) && names_no_lease(command);
  if (of_token) row = &kLeaseToken;
  const auto named = names.find(to_lower(field));
  FieldAdvice advice{of_token || named == names.end() ? std::string(field) : named->second};
  const bool is_duration = std::any_of(std::begin(kDurations), std::end(kDurations),
                                       [&](Bytes name) { return equals_ignore_case(name, field); });
  Bytes takes;
  if (row != nullptr) {
    takes = row->takes;
    advice.allowed = split_words(row->words);
  } else if (is_duration) {
    takes = kDuration;
  } else if (configures) {
    takes = "a name of 1 to 512 bytes, or a glob";
  }
  const std::vector<std::string> known = bands_of(command, bands);
  if (takes_band(field)) advice.allowed.insert(advice.allowed.end(), known.begin(), known.end());
  const std::string given = of_token ? command[3] : refused_value(values, advice.allowed);
  advice.nearest = nearest_word(misspelt_part(given, advice.allowed), advice.allowed);
  const bool is_band = equals_ignore_case(field, "pri") || equals_ignore_case(field, "default_pri");
  std::string form = is_band && !known.empty() ? listed(known) + ", or a number from 0 to 255"
                     : advice.allowed.empty() || configures ? std::string(takes)
                                                            : listed(advice.allowed);
  if (form.empty()) form = "another value";
  advice.detail = advice.field + " takes " + form;
  if (!given.empty()) advice.detail += ", not " + given.substr(0, 64);
  return advice;
}

}  // namespace sluice
