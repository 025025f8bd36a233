#include "net/config/config.h"

#include <algorithm>
#include <unordered_set>

#include "engine/access/passwords.h"
#include "engine/base/check.h"
#include "engine/commands/families.h"

namespace sluice {
namespace {

bool has_glob(Bytes pattern) { return pattern.find_first_of("[*?") != Bytes::npos; }

bool is_parameter(const Directive& directive) { return directive.change != ChangeRule::kFileOnly; }

ConfigDraft default_draft() {
  ConfigDraft draft;
  draft.values.resize(config_directives().size());
  for (const Directive& directive : config_directives()) {
    // An empty special value is represented by the initial value in Settings.
    const bool empty_special = directive.parse != nullptr && *directive.default_value == '\0';
    if (!is_parameter(directive) || empty_special) continue;
    const std::string value = directive.default_value;
    CHECK(apply_directive(directive, {&value, 1}, draft).ok());
  }
  return draft;
}

Status set_error(const std::string& name, const std::string& message) {
  return refusal("ERR CONFIG SET failed (possibly related to argument '" + name + "') - " +
                 message);
}

// The first pass over CONFIG SET's pairs checks names only. The first error is returned.
Status check_names(const Config::Pairs& pairs) {
  std::unordered_set<std::string> seen;
  for (const auto& [name, value] : pairs) {
    const Directive* directive = find_directive(name);
    if (directive == nullptr || !is_parameter(*directive)) {
      return refusal("ERR Unknown option or number of arguments for CONFIG SET - '" + name + "'");
    }
    // kRestart is checked later, because it depends on the value.
    if (directive->change == ChangeRule::kImmutable) {
      return set_error(name, "can't set immutable config");
    }
    if (!seen.insert(to_lower(name)).second) return set_error(name, "duplicate parameter");
  }
  return {};
}

}  // namespace

Config::Config() {
  install_commands();  // rules of users refer to commands
  MutexLock lock(mutex_);
  publish(default_draft());
}

std::vector<std::string> Config::warnings() const {
  MutexLock lock(mutex_);
  std::vector<std::string> all = current_.warnings;
  std::vector<std::string> names = current_.ignored;
  if (names.empty()) return all;
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::string text = "directives of Redis that have no effect here:";
  for (const std::string& name : names) text += ' ' + name;
  all.push_back(std::move(text));
  return all;
}

std::string Config::file() const {
  MutexLock lock(mutex_);
  return file_;
}

std::shared_ptr<const Settings> Config::settings() const {
  MutexLock lock(mutex_);
  return settings_;
}

void Config::publish(ConfigDraft draft) {
  current_ = std::move(draft);
  settings_ = std::make_shared<const Settings>(current_.settings);
}

Config::Pairs Config::get(const std::vector<std::string>& patterns) const {
  Pairs found;
  std::vector<size_t> indexes;
  std::unordered_set<std::string> seen;
  const auto add = [&](const std::string& shown_name, const Directive& directive) {
    if (!seen.insert(to_lower(shown_name)).second) return;
    found.emplace_back(shown_name, "");
    indexes.push_back(directive_index(directive));
  };
  for (const std::string& pattern : patterns) {
    if (!has_glob(pattern)) {
      const Directive* directive = find_directive(pattern);
      if (directive != nullptr && is_parameter(*directive)) add(pattern, *directive);
      continue;
    }
    for (const Directive& directive : config_directives()) {
      if (!is_parameter(directive)) continue;
      if (glob_match(pattern, directive.name, true)) add(directive.name, directive);
      if (*directive.alias != '\0' && glob_match(pattern, directive.alias, true)) {
        add(directive.alias, directive);
      }
    }
  }
  MutexLock lock(mutex_);
  for (size_t i = 0; i < found.size(); ++i) found[i].second = current_.values[indexes[i]];
  return found;
}

std::string Config::mark() const {
  static const ConfigDraft defaults = default_draft();
  std::string text;
  {
    MutexLock lock(mutex_);
    for (const Directive& directive : config_directives()) {
      if (directive.kind == DirectiveKind::kIgnored || directive.may_differ) continue;
      const size_t index = directive_index(directive);
      const std::string& value = current_.values[index];
      if (value != defaults.values[index]) text += directive.name + (' ' + value) + '\n';
    }
  }
  put_marks_for_hashes(text);
  return difference_mark(text);
}

Status Config::change(const Pairs& pairs, ConfigDraft& draft) {
  Status names = check_names(pairs);
  if (!names.ok()) return names;
  draft.from_file = false;
  for (const auto& [name, value] : pairs) {
    const Directive& directive = *find_directive(name);
    const std::string before = draft.values[directive_index(directive)];
    const Status status = apply_directive(directive, {&value, 1}, draft);
    if (!status.ok()) return set_error(to_lower(name), status.message());
    if (directive.change == ChangeRule::kRestart &&
        draft.values[directive_index(directive)] != before) {
      return set_error(to_lower(name), "changing it requires a restart of the server");
    }
  }
  return {};
}

// Calls the callback if one of the directives has the flag.
Status Config::ask(const Pairs& pairs, bool Directive::*flag, const ReloadCallback& callback,
                   const Settings& after) {
  const auto named = std::find_if(pairs.begin(), pairs.end(), [flag](const auto& pair) {
    return find_directive(pair.first)->*flag;
  });
  if (named == pairs.end() || callback == nullptr) return {};
  const Status status = callback(after);
  return status.ok() ? status : set_error(to_lower(named->first), status.message());
}

Status Config::set(const Pairs& pairs) {
  MutexLock set_lock(set_mutex_);
  return set_now(pairs);
}

Status Config::update(const std::string& name,
                      const std::function<std::string(const std::string& now)>& change) {
  MutexLock set_lock(set_mutex_);
  std::string now;
  {
    MutexLock lock(mutex_);
    now = current_.values[directive_index(*find_directive(name))];
  }
  return set_now({{name, change(now)}});
}

Status Config::set_now(const Pairs& pairs) {
  std::shared_ptr<const Settings> before;
  std::shared_ptr<const Settings> after;
  std::vector<ChangeCallback> callbacks;
  ConfigDraft draft;
  {
    MutexLock lock(mutex_);
    draft = current_;
  }
  Status status = change(pairs, draft);
  if (status.ok()) {
    status = check_together(draft.settings);
    if (!status.ok()) return set_error(to_lower(pairs[0].first), status.message());
  }
  if (status.ok()) status = ask(pairs, &Directive::limited, limit_, draft.settings);
  if (status.ok()) status = ask(pairs, &Directive::reload, reload_, draft.settings);
  if (status.ok()) status = ask(pairs, &Directive::listens, listen_, draft.settings);
  if (!status.ok()) return status;
  {
    MutexLock lock(mutex_);
    before = settings_;
    publish(std::move(draft));
    after = settings_;
    callbacks = callbacks_;
  }
  // Outside the lock, so that a callback may read the configuration.
  for (const ChangeCallback& callback : callbacks) callback(*before, *after);
  return {};
}

void Config::on_reload(ReloadCallback callback) {
  MutexLock lock(set_mutex_);
  reload_ = std::move(callback);
}

void Config::on_limit(ReloadCallback callback) {
  MutexLock lock(set_mutex_);
  limit_ = std::move(callback);
}

void Config::on_listen(ReloadCallback callback) {
  MutexLock lock(set_mutex_);
  listen_ = std::move(callback);
}

void Config::lower(const Pairs& pairs) {
  MutexLock set_lock(set_mutex_);
  MutexLock lock(mutex_);
  ConfigDraft draft = current_;
  for (const auto& [name, value] : pairs) {
    CHECK(apply_directive(*find_directive(name), {&value, 1}, draft).ok());
  }
  publish(std::move(draft));
}

void Config::on_change(ChangeCallback callback) {
  MutexLock lock(mutex_);
  callbacks_.push_back(std::move(callback));
}

}  // namespace sluice
