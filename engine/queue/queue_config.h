// QueueConfig: the configuration of one queue at its levels: the queue, and by glob groups, keys
// and workers. The fields, their defaults and the levels of each are those of the contract
// (QUEUE.md, Q.CONFIG); one table in queue_config_fields.cc holds them.
//
// Values are kept as the canonical text that Q.CONFIG GET replies and the journal records, and
// parsed once into the structs below. Plain data, guarded by the shard's lock.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/limits.h"

namespace sluice {

inline constexpr int kBands = 256;

// `rate n/ms[:burst]`: n tokens in this many milliseconds. The default burst is n. n = 0: no limit.
struct Rate {
  uint64_t tokens = 0;
  int64_t interval_ms = 0;
  uint64_t burst = 0;
  bool operator==(const Rate&) const = default;
};

enum class Paused : uint8_t { kNone = 0, kIn = 1, kOut = 2, kAll = 3 };
inline bool pauses_in(Paused paused) { return (static_cast<int>(paused) & 1) != 0; }
inline bool pauses_out(Paused paused) { return (static_cast<int>(paused) & 2) != 0; }

// `order`: bands below `lifo_from` stay FIFO; kBands: all of them (plain `fifo`).
struct Order {
  int lifo_from = kBands;
  bool is_lifo(uint8_t band) const { return band >= lifo_from; }
};

// `retain_*`, `events`: count[:ms[:bytes]]. 0 ms or bytes: no such bound.
struct Retention {
  uint64_t count = 0;
  int64_t age_ms = 0;
  uint64_t bytes = 0;
};

struct Reserve {
  int band = -1;  // -1: none
  uint64_t slots = 0;
};

// `adaptive min:max:low_ms:high_ms[:step]`. max = 0: off.
struct Adaptive {
  uint64_t min = 0;
  uint64_t max = 0;
  int64_t low_ms = 0;
  int64_t high_ms = 0;
  uint64_t step = 5;
};

// Fields that exist at more than one level, resolved for one group or key. 0: no limit.
struct Limits {
  uint64_t max_active = 0;
  uint64_t max_waiting = 0;
  uint64_t max_total = 0;
  Rate rate;
  Paused paused = Paused::kNone;
};

struct GroupConfig {
  Limits limits;
  int64_t ttl_ms = 0;  // the group's, else the queue's
  Order order;         // the group's, else the queue's
  double weight = 1.0;
  bool quiet = false;  // only of workers
};

struct QueueValues {
  Limits limits;
  int64_t ttl_ms = 0;
  Order order;
  double weight = 1.0;
  bool displace = false;
  bool fair = false;
  int64_t aging_ms = 0;
  Reserve reserve;
  Adaptive adaptive;
  std::vector<std::pair<std::string, uint8_t>> bands;  // name, stored band; in stored order
  bool descending = false;                             // priority_order desc
  uint8_t default_band = 2;                            // stored
  int64_t lease_ms = 30000;
  int64_t max_run_ms = 0;
  int64_t disconnect_grace_ms = 5000;
  uint32_t retry = 0;
  uint32_t crash_limit = 3;
  int64_t backoff_base_ms = 1000;
  int64_t backoff_max_ms = 300000;
  Retention retain_completed;
  Retention retain_failed;
  Retention events;
  uint64_t max_payload = 1 << 20;
  uint64_t log_bytes = 16 << 10;
  bool fencing = true;
  int64_t worker_ttl_ms = 60000;
  bool quiet = false;  // read for rules of workers
};

enum class ConfigLevel : uint8_t { kQueue = 0, kGroup = 1, kKey = 2, kWorker = 3 };

using ConfigField = std::pair<std::string, std::string>;

// Which groups, keys or workers have other values after a change.
enum class ConfigScope : uint8_t {
  kNothing,  // the configuration is unchanged
  kQueue,    // no group or key: a field of the queue alone
  kName,     // only the one of this name
  kLevel,    // any of this level
};

struct ConfigChange {
  std::string bad{};  // the field that prevented the change
  ConfigScope scope = ConfigScope::kNothing;
  ConfigLevel level = ConfigLevel::kQueue;  // another one if the scope is kName or kLevel
  std::string name{};
};

class QueueConfig {
 public:
  QueueConfig();

  // Sets fields at a level (`pattern` is empty for the queue), all or nothing. `bad` is empty, or
  // the name of the field that is unknown, is not allowed at this level, or has an invalid value.
  ConfigChange set(ConfigLevel level, Bytes pattern,
                   std::span<const std::pair<Bytes, Bytes>> fields);
  // What set() would make of a level, however many rules there are.
  struct Parsed {
    std::string bad{};                  // as in ConfigChange
    std::vector<ConfigField> fields{};  // all that the level then sets
    QueueValues values{};               // of the queue; of a rule those of `fields`
  };
  Parsed parse(ConfigLevel level, Bytes pattern,
               std::span<const std::pair<Bytes, Bytes>> fields) const;
  // The limits of one group or key if `rule` were the rule of its name.
  Limits limits_with(ConfigLevel level, Bytes name, const Parsed& rule) const;
  // Resets the queue's own fields to the defaults (rules stay), or removes the rule of this glob.
  // The result is as in set(): `bands` if a rule names a band that the defaults do not have.
  ConfigChange reset(ConfigLevel level, Bytes pattern);
  // The fields of this level with their present values, in the table's order; for a rule those that
  // it sets. `names`: only these, empty: all. An unknown name is returned in `bad`.
  std::vector<ConfigField> get(ConfigLevel level, Bytes pattern, std::span<const Bytes> names,
                               std::string& bad) const;

  const QueueValues& values() const { return values_; }
  // The values for one group or key: for each field the exact name wins, then the glob with the
  // most literal bytes, then the later one.
  GroupConfig group(Bytes name) const;
  Limits key(Bytes name) const;
  // Whether a worker gets no new jobs. One without a name is never quiet.
  bool quiet(Bytes worker) const {
    return has_worker_rules() && !worker.empty() && resolve_quiet(worker);
  }
  bool has_worker_rules() const { return !rules_of(ConfigLevel::kWorker).empty(); }

  // Rules for the names of single workers: when the worker was heard of last, in queue time. Not
  // recorded.
  bool has_worker_names() const { return !rules_of(ConfigLevel::kWorker).names.empty(); }
  void heard(Bytes worker, int64_t now_ms);
  // The earliest of these times; INT64_MAX: there is no such rule.
  int64_t oldest_heard_ms() const;
  // The names that were not heard of since then. Those of unknown time have been heard of now.
  std::vector<std::string> silent_workers(int64_t before_ms, int64_t now_ms);

  // Parses a band by its name or number as clients write it, which depends on priority_order.
  std::optional<uint8_t> parse_band(Bytes text) const;
  // Its name, or its number as clients write it.
  std::string band_name(uint8_t band) const;
  // The number as clients see it.
  int band_number(uint8_t band) const { return values_.descending ? 255 - band : band; }

  // For the journal: the levels and patterns that have been set, and one of them as it is recorded.
  // Fields of a rule are in the order in which they were set. apply() replaces all of them, and
  // makes the rule the one changed last even if it is unchanged: replay repeats records that a
  // checkpoint already includes, and must end with the same order.
  std::vector<std::pair<ConfigLevel, std::string>> rules() const;
  // The number of rules.
  size_t rule_count() const {
    size_t count = 0;
    for (const Rules& rules : rules_) count += rules.names.size() + rules.globs.size();
    return count;
  }
  std::vector<ConfigField> recorded(ConfigLevel level, Bytes pattern) const;

  struct ListedRule {
    ConfigLevel level = ConfigLevel::kGroup;
    std::string glob;
    std::span<const ConfigField> fields;  // until the next change
  };
  // Appends at most `count` rules that follow `cursor`, which becomes that of the next page ("0":
  // the beginning, and the end): of each level names, then globs in the order of their changes. A
  // glob that is changed meanwhile may be listed twice. Returns false if there is no such cursor.
  bool list_rules(std::string& cursor, size_t count, std::vector<ListedRule>& page) const;

  ConfigChange apply(ConfigLevel level, Bytes pattern, std::span<const ConfigField> fields);

  // Globs of groups or keys; each is matched with every name.
  size_t glob_count(ConfigLevel level) const { return rules_of(level).globs.size(); }
  // Whether some group or key has a rate.
  bool has_rates() const;

  size_t memory_bytes() const;  // maintained, as there may be many rules

 private:
  struct Rule {
    uint64_t changed = 0;  // order of the last changes
    std::vector<ConfigField> fields;
    // The parsed rule: a bit for each field of the table that it sets, and the values.
    uint32_t sets = 0;
    GroupConfig values;
    size_t literal_bytes = 0;
    int64_t heard_ms = 0;  // of a worker's name; 0: unknown
  };
  using Patterns = std::map<std::string, Rule, std::less<>>;
  // The rules of one level. A glob that matches one name only (glob_literal) is looked up by that
  // name instead of matched, because there may be many.
  struct Rules {
    Patterns names;
    Patterns globs;
    bool empty() const { return names.empty() && globs.empty(); }
  };
  const Rule* find_rule(ConfigLevel level, Bytes pattern) const;
  Rules& rules_of(ConfigLevel level) { return rules_[static_cast<size_t>(level) - 1]; }
  const Rules& rules_of(ConfigLevel level) const { return rules_[static_cast<size_t>(level) - 1]; }
  static size_t bytes_of(const Patterns::value_type& rule);
  ConfigChange put_rule(ConfigLevel level, Bytes pattern, std::vector<ConfigField> fields);
  Parsed parse_queue(std::vector<ConfigField> changed, std::span<const Bytes> given) const;
  ConfigChange take_queue(Parsed parsed);
  ConfigChange take_queue(std::vector<ConfigField> fields, QueueValues values);
  // Calls `visit` with each rule that names bands.
  template <class Self, class Visit>
  static void for_each_band_rule(Self& self, Visit visit);
  static bool read_rule(Rule& rule, QueueValues& scratch);
  void read_rules();
  bool rules_are_readable(const QueueValues& values) const;
  void resolve(ConfigLevel level, Bytes name, GroupConfig& config) const;
  bool resolve_quiet(Bytes worker) const;

  std::vector<ConfigField> fields_;  // of the queue: those that were set, as canonical text
  std::array<Rules, 3> rules_;       // groups, keys, workers
  size_t rule_bytes_ = 0;
  uint64_t last_change_ = 0;
  QueueValues values_;
};

}  // namespace sluice
