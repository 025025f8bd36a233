// What changes the configuration of a queue into that of a file.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/base/glob_literal.h"
#include "net/http/json_text.h"
#include "tools/cli/config_file.h"
#include "tools/cli/text.h"

namespace sluice::cli {

namespace {

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

// What of `wanted` has to be set so that its order holds, if it is `now` and those in `set` are set
// anyway: what is set becomes the last one.
std::vector<RuleName> globs_to_set(const std::vector<RuleName>& now,
                                   const std::vector<RuleName>& wanted,
                                   const std::set<RuleName>& set) {
  // Only among these the order matters.
  using Peers = std::pair<ConfigLevel, size_t>;
  const auto peers_of = [](const RuleName& rule) {
    return Peers{rule.first, glob_literal_bytes(rule.second)};
  };
  const std::set<RuleName> all(wanted.begin(), wanted.end());
  std::map<Peers, std::vector<RuleName>> in_place;
  for (const RuleName& rule : now) {
    if (all.contains(rule)) in_place[peers_of(rule)].push_back(rule);
  }
  std::vector<RuleName> result;
  for (const RuleName& rule : wanted) {
    std::vector<RuleName>& left = in_place[peers_of(rule)];
    const auto at = set.contains(rule) ? left.end() : std::find(left.begin(), left.end(), rule);
    if (at == left.end()) result.push_back(rule);
    // Those before it will be set behind it, and all will if it is set itself.
    left.erase(left.begin(), at == left.end() ? at : at + 1);
  }
  return result;
}

void plan_order(const std::string& queue, const QueueSettings& now, const QueueSettings& wanted,
                std::vector<SettingChange>& changes) {
  std::vector<RuleName> stay = wanted.globs;
  std::erase_if(stay, [&](const RuleName& rule) { return !now.rules.contains(rule); });
  for (const RuleName& rule : globs_to_set(now.globs, stay, {})) {
    changes.push_back({'~', queue, rule, "", "", ""});
  }
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
  plan_order(queue, known, wanted, changes);
  return changes;
}

namespace {

// The rules that are reset and set anew, with what they shall be.
std::map<RuleName, Settings> anew(const std::vector<SettingChange>& changes,
                                  const QueueSettings& now, const std::set<RuleName>& changed,
                                  const std::vector<RuleName>& last) {
  std::map<RuleName, Settings> again;
  for (const SettingChange& change : changes) {
    // A field of a rule is removed with the rule. The value of `order` may name a band that the
    // queue's new bands lack.
    const bool resets_it = change.sign == '-' || change.field == "order";
    if (resets_it && now.rules.contains(change.rule))
      again[change.rule] = now.rules.at(change.rule);
  }
  for (const RuleName& rule : last) {
    if (!changed.contains(rule)) again[rule] = now.rules.at(rule);
  }
  for (const SettingChange& change : changes) {
    const auto rule = again.find(change.rule);
    if (rule == again.end()) continue;
    change.to.empty() ? static_cast<void>(rule->second.erase(change.field))
                      : static_cast<void>(rule->second[change.field] = change.to);
  }
  return again;
}

}  // namespace

std::vector<Words> commands_of(const std::vector<SettingChange>& changes,
                               const std::optional<QueueSettings>& now,
                               const QueueSettings& wanted) {
  const QueueSettings known = now.value_or(QueueSettings());
  std::set<RuleName> changed;
  for (const SettingChange& change : changes) {
    if (!change.field.empty()) changed.insert(change.rule);
  }
  const std::vector<RuleName> last = globs_to_set(known.globs, wanted.globs, changed);
  std::map<RuleName, Settings> sets = anew(changes, known, changed, last);
  std::vector<Words> commands;
  for (const auto& [rule, settings] : sets) {
    commands.push_back(config_words(changes[0].queue, rule));
    commands.back().emplace_back("RESET");
  }
  for (const SettingChange& change : changes) {
    if (!change.to.empty()) sets[change.rule][change.field] = change.to;
  }
  std::erase_if(sets, [](const auto& rule) { return rule.second.empty(); });
  // Any setting makes a queue: this one is its default.
  if (!now && sets.empty()) sets[{}] = {{"max_active", "0"}};
  // The queue's own fields come first: the bands that those of rules name.
  std::vector<RuleName> order;
  for (const auto& [rule, settings] : sets) {
    if (std::find(last.begin(), last.end(), rule) == last.end()) order.push_back(rule);
  }
  order.insert(order.end(), last.begin(), last.end());
  for (const RuleName& rule : order) {
    Words& command = commands.emplace_back(config_words(changes[0].queue, rule));
    command.emplace_back("SET");
    for (const auto& [field, text] : sets.at(rule)) command.insert(command.end(), {field, text});
  }
  return commands;
}

std::string change_text(const SettingChange& change) {
  std::string text = std::string(1, change.sign) + " " + shown_queue(change.queue) + ": ";
  if (change.rule.first != ConfigLevel::kQueue) {
    text += std::string(word_of(change.rule.first)) + " " + printable(change.rule.second) + ": ";
  }
  if (change.field.empty()) {
    return text + (change.rule.first == ConfigLevel::kQueue ? "a new queue" : "moved to the end");
  }
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
