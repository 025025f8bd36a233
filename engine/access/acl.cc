#include "engine/access/acl.h"

#include <algorithm>
#include <set>

#include "engine/access/passwords.h"
#include "engine/base/check.h"

namespace sluice {

namespace {

constexpr const char* kBadUserName = "Usernames can't contain spaces or null characters";

AclRules rules_of_default_user() {
  AclRules rules(false);
  for (const char* rule : {"on", "nopass", "allkeys", "allchannels", "allcommands"}) {
    CHECK(rules.apply(rule) == nullptr);
  }
  return rules;
}

// REQUIRES: join_selectors() has returned false.
std::string unmatched(const std::vector<std::string>& words) {
  const std::string& selector = words.back();
  return "Unmatched parenthesis in acl selector starting at '" +
         selector.substr(0, selector.find(' ')) + "'.";
}

Status in_declaration(const std::string& name, const std::string& reason) {
  return invalid("Error in user declaration '" + name + "': " + reason);
}

}  // namespace

// --- A user ---

User::User(std::string user_name, AclRules rules) : name(std::move(user_name)) {
  publish(std::move(rules));
}

std::shared_ptr<const AclRules> User::rules() const {
  MutexLock lock(mutex_);
  return rules_;
}

void User::publish(AclRules rules) {
  auto snapshot = std::make_shared<const AclRules>(std::move(rules));
  const bool everything = snapshot->permissions().is_everything();
  MutexLock lock(mutex_);
  // The old snapshot is freed after the lock is released.
  rules_.swap(snapshot);
  unrestricted.store(everything, std::memory_order_relaxed);
}

// --- Authentication ---

Acl::Acl() : default_user_(std::make_shared<User>("default", rules_of_default_user())) {
  MutexLock lock(mutex_);
  users_.emplace(default_user_->name, default_user_);
}

bool Acl::default_user_needs_no_password() const {
  return default_user_->rules()->needs_no_password();
}

std::shared_ptr<User> Acl::user_at_connect() const {
  const auto rules = default_user_->rules();
  return rules->enabled() && rules->needs_no_password() ? default_user_ : nullptr;
}

std::shared_ptr<User> Acl::find(Bytes name) const {
  MutexLock lock(mutex_);
  const auto found = users_.find(name);
  return found == users_.end() ? nullptr : found->second;
}

std::shared_ptr<User> Acl::authenticate(Bytes name, Bytes password) const {
  // The password of an unknown user is hashed and compared, too, so that the time does not reveal
  // which users exist.
  static const AclRules stranger = [] {
    AclRules rules(false);
    rules.apply(">");
    return rules;
  }();
  const std::string hash = hash_password(password);
  std::shared_ptr<User> user = find(name);
  const auto rules = user == nullptr ? nullptr : user->rules();
  const bool matches = (rules == nullptr ? stranger : *rules).has_password(hash);
  if (rules == nullptr || !rules->enabled()) return nullptr;
  return matches || rules->needs_no_password() ? user : nullptr;
}

std::vector<std::shared_ptr<User>> Acl::users() const {
  std::vector<std::shared_ptr<User>> all;
  MutexLock lock(mutex_);
  for (const auto& [name, user] : users_) all.push_back(user);
  return all;
}

std::string Acl::line_of(const User& user) {
  return "user " + user.name + " " + user.rules()->describe();
}

// --- The check ---

std::string Acl::refusal(Denial denial, const Command& command) {
  switch (denial) {
    case Denial::kNone:
      break;
    case Denial::kCommand:
      return "NOPERM this user has no permissions to run the '" + CommandTable::full_name(command) +
             "' command";
    case Denial::kKey:
      return "NOPERM this user has no permissions to access one of the keys used as arguments";
    case Denial::kChannel:
      return "NOPERM this user has no permissions to access one of the channels used as arguments";
  }
  CHECK(false);
}

// --- Changes ---

void Acl::put(const std::string& name, AclRules rules) {
  const auto found = users_.find(name);
  if (found != users_.end()) {
    found->second->publish(std::move(rules));
  } else {
    users_.emplace(name, std::make_shared<User>(name, std::move(rules)));
  }
  ++changes_;
}

Status Acl::set_user(Bytes name, std::span<const Bytes> rules) {
  if (has_blank_or_nul(name)) return invalid(kBadUserName);
  MutexLock lock(mutex_);
  const auto found = users_.find(name);
  AclRules changed = found == users_.end() ? new_rules() : *found->second->rules();
  changed.set_all_channels_by_default(all_channels_by_default_.load());
  std::vector<std::string> words(rules.begin(), rules.end());
  if (!join_selectors(words)) return invalid(unmatched(words));
  for (const std::string& rule : words) {
    if (const char* reason = changed.apply(rule)) {
      return invalid("Error in ACL SETUSER modifier '" + rule + "': " + reason);
    }
  }
  put(std::string(name), std::move(changed));
  return {};
}

bool Acl::delete_user(Bytes name) {
  CHECK(name != default_user_->name);
  MutexLock lock(mutex_);
  const auto found = users_.find(name);
  if (found == users_.end()) return false;
  const std::shared_ptr<User> user = std::move(found->second);
  users_.erase(found);
  user->deleted.store(true);
  user->publish(AclRules(false));
  ++changes_;
  return true;
}

void Acl::set_default_password(Bytes password) {
  MutexLock lock(mutex_);
  AclRules rules = *default_user_->rules();
  rules.apply("resetpass");
  rules.apply(password.empty() ? std::string("nopass") : ">" + std::string(password));
  put(default_user_->name, std::move(rules));
}

// --- At the start ---

Status Acl::apply(const UserLine& line, AclRules& rules) {
  if (line.empty() || has_blank_or_nul(line[0])) {
    return in_declaration(line.empty() ? std::string() : line[0], kBadUserName);
  }
  UserLine words(line.begin() + 1, line.end());
  if (!join_selectors(words)) return in_declaration(line[0], unmatched(words));
  for (const std::string& word : words) {
    if (const char* reason = rules.apply(word)) {
      return in_declaration(line[0], "'" + word + "': " + reason);
    }
  }
  return {};
}

Status Acl::validate(const UserLine& line) {
  AclRules rules(false);
  return apply(line, rules);
}

Status Acl::load(std::span<const UserLine> lines) {
  std::vector<AclRules> all;
  std::set<Bytes> names;
  for (const UserLine& line : lines) {
    all.push_back(new_rules());
    // The default user already exists. The line begins with a reset, as Redis shows it.
    if (!line.empty() && line[0] == default_user_->name) all.back().apply("reset");
    Status status = apply(line, all.back());
    if (!status.ok()) return status;
    if (!names.insert(line[0]).second) {
      return in_declaration(line[0], "Duplicate user found. A user can only be defined once");
    }
  }
  MutexLock lock(mutex_);
  for (size_t i = 0; i < all.size(); ++i) put(lines[i][0], std::move(all[i]));
  return {};
}

std::string Acl::read_line(Bytes line, const std::string& place, int number,
                           std::map<std::string, AclRules, std::less<>>& users) const {
  constexpr Bytes kBlanks = " \t\r\n";
  const size_t begin = line.find_first_not_of(kBlanks);
  if (begin == Bytes::npos) return {};
  line = line.substr(begin, line.find_last_not_of(kBlanks) - begin + 1);
  std::vector<std::string> words;
  for (size_t at = 0; at <= line.size();) {
    const size_t end = std::min(line.find(' ', at), line.size());
    words.emplace_back(line.substr(at, end - at));
    at = end + 1;
  }
  if (words.size() < 2 || words[0] != "user") {
    return place + " should start with user keyword followed by the username. ";
  }
  const std::string name = words[1];
  if (has_blank_or_nul(name)) return place + ": " + kBadUserName + ". ";
  if (users.contains(name)) {
    return "WARNING: Duplicate user '" + name + "' found on line " + std::to_string(number) + ". ";
  }
  words.erase(words.begin(), words.begin() + 2);
  if (!join_selectors(words)) return place + ": Unmatched parenthesis in selector definition.";
  AclRules& rules = users.emplace(name, new_rules()).first->second;
  std::string errors;
  bool other_error = false;
  for (const std::string& word : words) {
    const char* reason = rules.apply(word);
    if (reason == nullptr) continue;
    if (is_unknown_name(reason)) {
      errors += place + ": Error in applying operation '" + word + "': " + reason + ". ";
    } else if (!other_error) {
      // The text may contain a password, and later errors may be a consequence of this one.
      other_error = true;
      errors += place + ": " + reason + ". ";
    }
  }
  return errors;
}

Status Acl::load_text(Bytes text, const std::string& name) {
  std::map<std::string, AclRules, std::less<>> users;
  std::string errors;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    errors += read_line(text.substr(0, end), name + ":" + std::to_string(number), number, users);
    text.remove_prefix(end == Bytes::npos ? text.size() : end + 1);
  }
  if (!errors.empty()) {
    return invalid(
        errors +
        "WARNING: ACL errors detected, no change to the previously active ACL rules was performed");
  }
  users.emplace(default_user_->name, rules_of_default_user());
  MutexLock lock(mutex_);
  for (auto old = users_.begin(); old != users_.end();) {
    // New connections get the new users. The caller closes the connections of the old ones.
    if (old->second == default_user_) {
      ++old;
      continue;
    }
    old->second->deleted.store(true);
    old->second->publish(AclRules(false));
    old = users_.erase(old);
  }
  for (auto& [user_name, rules] : users) put(user_name, std::move(rules));
  return {};
}

std::string Acl::text() const {
  std::string text;
  for (const std::shared_ptr<User>& user : users()) text += line_of(*user) + "\n";
  return text;
}

}  // namespace sluice
