#include "engine/acl.h"

#include <set>
#include <sstream>

#include "engine/base/check.h"
#include "engine/passwords.h"

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

std::string in_declaration(const std::string& name, const std::string& reason) {
  return "Error in user declaration '" + name + "': " + reason;
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
  // The old snapshot dies behind the lock.
  rules_.swap(snapshot);
  unrestricted.store(everything, std::memory_order_relaxed);
}

// --- Who speaks ---

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
  // A stranger's password is hashed and compared too: the time must not tell who exists.
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

std::string Acl::check(const User& user, const Command& command,
                       std::span<const Bytes> args) const {
  switch (user.rules()->permissions().check(command, args)) {
    case Denial::kNone:
      return {};
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
}

std::string Acl::set_user(Bytes name, std::span<const Bytes> rules) {
  if (has_blank_or_nul(name)) return kBadUserName;
  MutexLock lock(mutex_);
  const auto found = users_.find(name);
  AclRules changed = found == users_.end() ? new_rules() : *found->second->rules();
  changed.set_all_channels_by_default(all_channels_by_default_.load());
  for (const Bytes rule : rules) {
    if (const char* reason = changed.apply(rule)) {
      return "Error in ACL SETUSER modifier '" + std::string(rule) + "': " + reason;
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
  return true;
}

void Acl::set_default_password(Bytes password) {
  MutexLock lock(mutex_);
  AclRules rules = *default_user_->rules();
  rules.apply("resetpass");
  rules.apply(password.empty() ? std::string("nopass") : ">" + std::string(password));
  default_user_->publish(std::move(rules));
}

// --- At the start ---

std::string Acl::apply(const UserLine& line, AclRules& rules) {
  if (line.empty() || has_blank_or_nul(line[0])) {
    return in_declaration(line.empty() ? std::string() : line[0], kBadUserName);
  }
  for (size_t i = 1; i < line.size(); ++i) {
    if (const char* reason = rules.apply(line[i])) {
      return in_declaration(line[0], "'" + line[i] + "': " + reason);
    }
  }
  return {};
}

std::string Acl::validate(const UserLine& line) {
  AclRules rules(false);
  return apply(line, rules);
}

std::string Acl::load(std::span<const UserLine> lines) {
  std::vector<AclRules> all;
  std::set<Bytes> names;
  for (const UserLine& line : lines) {
    all.push_back(new_rules());
    // He is there already: his line begins with a reset, as Redis shows it.
    if (!line.empty() && line[0] == default_user_->name) all.back().apply("reset");
    std::string error = apply(line, all.back());
    if (!error.empty()) return error;
    if (!names.insert(line[0]).second) {
      return in_declaration(line[0], "Duplicate user found. A user can only be defined once");
    }
  }
  MutexLock lock(mutex_);
  for (size_t i = 0; i < all.size(); ++i) put(lines[i][0], std::move(all[i]));
  return {};
}

std::string Acl::load_text(Bytes text, const std::string& name) {
  std::vector<UserLine> lines;
  std::istringstream in{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    std::istringstream split(line);
    UserLine words;
    for (std::string word; split >> word;) words.push_back(word);
    if (words.empty()) continue;
    const std::string place = name + ":" + std::to_string(number) + ": ";
    if (words[0] != "user" || words.size() < 2) {
      return place + "a line begins with 'user' and his name";
    }
    words.erase(words.begin());
    const std::string error = validate(words);
    if (!error.empty()) return place + error;
    lines.push_back(std::move(words));
  }
  const std::string error = load(lines);
  return error.empty() ? error : name + ": " + error;
}

}  // namespace sluice
