// What changes the configuration of a queue into that of a file.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "net/http/json_text.h"
#include "tools/cli/config_file.h"
#include "tools/cli/text.h"

namespace sluice::cli {

namespace {

constexpr const char* kPaused = "paused";

const char* word_of(ConfigLevel level) {
  switch (level) {
    case ConfigLevel::kGroup:
      return "group";
    case ConfigLevel::kKey:
      return "key";
    case ConfigLevel::kWorker:
      return "worker";
    case ConfigLevel::kQueue:
      break;
  }
  return "";
}

void plan_fields(const std::string& queue, const Settings& now, const QueueSettings& wanted,
                 std::vector<SettingChange>& changes) {
  for (const auto& [field, to] : wanted.fields) {
    const auto known = now.find(field);
    // A server of another version may lack it.
    if (known == now.end() || known->second == to) continue;
    if (field == kPaused && !wanted.has_paused) continue;
    const std::string& usual = default_settings().fields.at(field);
    const char sign = known->second == usual ? '+' : to == usual ? '-' : '~';
    changes.push_back({sign, queue, {}, field, known->second, to});
  }
}

void plan_rule(const std::string& queue, const RuleName& rule, const Settings& now,
               const Settings& wanted, std::vector<SettingChange>& changes) {
  for (const auto& [field, to] : wanted) {
    const auto known = now.find(field);
    if (known == now.end()) {
      changes.push_back({'+', queue, rule, field, "", to});
    } else if (known->second != to) {
      changes.push_back({'~', queue, rule, field, known->second, to});
    }
  }
  for (const auto& [field, from] : now) {
    if (wanted.contains(field) || field == kPaused) continue;
    changes.push_back({'-', queue, rule, field, from, ""});
  }
}

Settings rule_of(const std::map<RuleName, Settings>& rules, const RuleName& rule) {
  const auto found = rules.find(rule);
  return found == rules.end() ? Settings() : found->second;
}

Words config_words(const std::string& queue, const RuleName& rule) {
  Words words = {"Q.CONFIG", queue};
  if (rule.first != ConfigLevel::kQueue) {
    words.insert(words.end(), {word_of(rule.first), rule.second});
  }
  return words;
}

}  // namespace

std::vector<SettingChange> plan_changes(const std::string& queue,
                                        const std::optional<QueueSettings>& now,
                                        const QueueSettings& wanted) {
  std::vector<SettingChange> changes;
  if (!now) changes.push_back({'+', queue, {}, "", "", ""});
  const QueueSettings& known = now ? *now : default_settings();
  plan_fields(queue, known.fields, wanted, changes);
  std::map<RuleName, Settings> rules = known.rules;
  rules.insert(wanted.rules.begin(), wanted.rules.end());
  for (const auto& [rule, either] : rules) {
    if (rule.first == ConfigLevel::kWorker && !wanted.has_workers) continue;
    plan_rule(queue, rule, rule_of(known.rules, rule), rule_of(wanted.rules, rule), changes);
  }
  return changes;
}

std::vector<Words> commands_of(const std::vector<SettingChange>& changes,
                               const std::optional<QueueSettings>& now) {
  std::vector<Words> resets;
  std::map<RuleName, Words> sets;
  std::map<RuleName, Settings> again;  // rules that are set anew
  bool makes_queue = false;
  for (const SettingChange& change : changes) {
    // A field of a rule is removed with the rule. The value of `order` may name a band that the
    // queue's new bands lack.
    const bool is_rule = change.rule.first != ConfigLevel::kQueue;
    const bool resets_it = is_rule && (change.sign == '-' || change.field == "order");
    if (resets_it && now && now->rules.contains(change.rule)) {
      again.emplace(change.rule, rule_of(now->rules, change.rule));
    }
  }
  for (const SettingChange& change : changes) {
    if (const auto anew = again.find(change.rule); anew != again.end()) {
      change.to.empty() ? static_cast<void>(anew->second.erase(change.field))
                        : static_cast<void>(anew->second[change.field] = change.to);
      continue;
    }
    if (change.field.empty()) {
      makes_queue = true;
      continue;
    }
    sets[change.rule].insert(sets[change.rule].end(), {change.field, change.to});
  }
  // Any setting makes a queue: this one is its default.
  if (makes_queue && sets.empty()) sets[{}] = {"max_active", "0"};
  for (const auto& [rule, settings] : again) {
    resets.push_back(config_words(changes[0].queue, rule));
    resets.back().emplace_back("RESET");
    for (const auto& [field, text] : settings) {
      sets[rule].insert(sets[rule].end(), {field, text});
    }
  }
  // The queue's own fields come first: the bands that those of rules name.
  for (const auto& [rule, words] : sets) {
    Words command = config_words(changes[0].queue, rule);
    command.emplace_back("SET");
    command.insert(command.end(), words.begin(), words.end());
    resets.push_back(std::move(command));
  }
  return resets;
}

std::string change_text(const SettingChange& change) {
  std::string text = std::string(1, change.sign) + " " + printable(change.queue) + ": ";
  if (change.rule.first != ConfigLevel::kQueue) {
    text += std::string(word_of(change.rule.first)) + " " + printable(change.rule.second) + ": ";
  }
  if (change.field.empty()) return text + "a new queue";
  text += change.field + " ";
  text += change.from.empty() ? printable(change.to)
          : change.to.empty() ? printable(change.from)
                              : printable(change.from) + " -> " + printable(change.to);
  return text + (change.note.empty() ? "" : "; " + change.note);
}

nlohmann::json change_to_json(const SettingChange& change) {
  nlohmann::json line = {{"change", std::string(1, change.sign)}, {"field", nullptr}};
  put_bytes(line, "queue", change.queue);
  if (change.rule.first != ConfigLevel::kQueue) {
    put_bytes(line, word_of(change.rule.first), change.rule.second);
  }
  if (!change.field.empty()) line["field"] = change.field;
  line["from"] = change.from.empty() ? nlohmann::json() : nlohmann::json(change.from);
  line["to"] = change.to.empty() ? nlohmann::json() : nlohmann::json(change.to);
  if (!change.note.empty()) line["note"] = change.note;
  return line;
}

}  // namespace sluice::cli
