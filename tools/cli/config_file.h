// The configuration of queues as a file, and what would change a server's into it.
//
// The file is JSON: fields as Q.CONFIG takes them, and rules by glob.
//
//   {"queues": {"exec": {"max_active": 8, "rate": "20/1s",
//                        "groups": {"team.*": {"max_active": 2}},
//                        "keys": {"gpu": {"max_active": 1}},
//                        "workers": {"host-7:*": {"quiet": "on"}}}}}
//
// It is the whole configuration of each queue in it: what it leaves out has its default. Only
// `paused` and rules of workers, which are steered while a queue runs, stay as they are unless the
// file names them. The order of rules counts as that of Q.CONFIG SET does. Pure functions.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/queue/queue_config.h"
#include "tools/cli/arguments.h"

namespace sluice::cli {

using Settings = std::map<std::string, std::string>;   // by field, as Q.CONFIG GET shows them
using RuleName = std::pair<ConfigLevel, std::string>;  // level and glob

// The field that a file may leave out.
inline constexpr const char* kPaused = "paused";

struct QueueSettings {
  Settings fields;  // every field of the queue
  std::map<RuleName, Settings> rules;
  // Those of the rules that match several names. Of several that match a name and have equally many
  // literal bytes the last one wins.
  std::vector<RuleName> globs;
  // What is left alone if it is not in the file.
  bool has_paused = false;
  bool has_workers = false;

  // Sets a rule as the last one.
  void put_rule(const RuleName& rule, Settings settings);
};

// Throws a Failure that names the line, the field and what it takes. `name` is the file's.
std::map<std::string, QueueSettings> read_config_file(const std::string& name, Bytes text);
// What the configuration of a queue is if nothing is set.
const QueueSettings& default_settings();
// The file that read_config_file() reads as these settings.
std::string write_config_file(const std::map<std::string, QueueSettings>& queues);

// One line of a plan. `+`: it was not set, `-`: it will not be, `~`: it is changed.
struct SettingChange {
  char sign;
  std::string queue;
  RuleName rule;      // the level is kQueue for the queue's own fields
  std::string field;  // empty: the queue itself is made, or the rule moves behind others
  std::string from;
  std::string to;
  std::string note = {};  // what it means now
};

// `now` is nothing if there is no such queue.
std::vector<SettingChange> plan_changes(const std::string& queue,
                                        const std::optional<QueueSettings>& now,
                                        const QueueSettings& wanted);
// The commands for the changes of one queue, to be run in one transaction: rules that lose a field
// or move are set anew.
std::vector<Words> commands_of(const std::vector<SettingChange>& changes,
                               const std::optional<QueueSettings>& now,
                               const QueueSettings& wanted);

// "~ exec: group team.*: max_active 2 -> 4"
std::string change_text(const SettingChange& change);
nlohmann::json change_to_json(const SettingChange& change);

}  // namespace sluice::cli
