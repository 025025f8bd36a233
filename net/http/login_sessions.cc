#include "net/http/login_sessions.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "engine/access/passwords.h"
#include "engine/table/command.h"

namespace sluice {

namespace {

// Whether the user may run the command at all; keys are checked when a command runs.
bool may_run(const AclRules& rules, const Command& command) {
  std::vector<Bytes> words;
  if (command.container != nullptr) words.emplace_back(command.container->name);
  words.emplace_back(command.name);
  const auto least = static_cast<size_t>(std::abs(command.arity));
  while (words.size() < least) words.emplace_back("1");
  return rules.check(command, words).denial != Denial::kCommand;
}

// Whether the user may run all commands that satisfy `wanted`.
template <class Wanted>
bool may_run_all(const AclRules& rules, Wanted wanted) {
  const CommandTable& table = CommandTable::instance();
  for (size_t id = 0; id < table.id_limit(); ++id) {
    const Command& command = table.by_id(id);
    if (wanted(command) && !may_run(rules, command)) return false;
  }
  return true;
}

bool is_of_queues(const Command& command) { return Bytes(command.group) == "queue"; }

}  // namespace

std::optional<Role> role_of_rules(const AclRules& rules) {
  const bool reads = may_run_all(rules, [](const Command& command) {
    return is_of_queues(command) && (command.flags & kReadonly) != 0;
  });
  if (!reads) return std::nullopt;
  if (!may_run_all(rules, is_of_queues)) return Role::kRead;
  const bool administers =
      may_run_all(rules, [](const Command& command) { return (command.acl & kAclAdmin) != 0; });
  return administers ? Role::kAdmin : Role::kOperate;
}

// --- Failures ---

LoginSessions::Failures& LoginSessions::failures_of(Bytes address) {
  const Clock::time_point now = Clock::now();
  const auto is_over = [&](const Failures& failures) {
    return now - failures.began >= tries_window_;
  };
  auto found = failures_.find(address);
  if (found == failures_.end()) {
    if (failures_.size() >= kMostAddresses) {
      std::erase_if(failures_, [&](const auto& entry) { return is_over(entry.second); });
    }
    const bool room = failures_.size() < kMostAddresses;
    found = failures_.try_emplace(room ? std::string(address) : std::string()).first;
  }
  if (is_over(found->second)) found->second = {now, 0};
  return found->second;
}

bool LoginSessions::may_try(Bytes address) {
  MutexLock lock(mutex_);
  return failures_of(address).count < kMostFailures;
}

void LoginSessions::note_failure(Bytes address) {
  MutexLock lock(mutex_);
  ++failures_of(address).count;
}

// --- Sessions ---

bool LoginSessions::lasts(const Session& session) {
  return Clock::now() < session.ends && !session.user->deleted.load() &&
         session.user->rules() == session.rules;
}

std::string LoginSessions::begin(std::shared_ptr<User> user, std::shared_ptr<const AclRules> rules,
                                 Role role) {
  std::string secret = random_hex(kSecretDigits);
  Session session{std::move(user), std::move(rules), role, Clock::now() + lifetime_};
  MutexLock lock(mutex_);
  std::erase_if(sessions_, [](const auto& entry) { return !lasts(entry.second); });
  if (sessions_.size() == kMostSessions) {
    sessions_.erase(std::min_element(
        sessions_.begin(), sessions_.end(),
        [](const auto& a, const auto& b) { return a.second.ends < b.second.ends; }));
  }
  sessions_.insert_or_assign(hash_password(secret), std::move(session));
  return secret;
}

bool LoginSessions::end(Bytes hash) {
  MutexLock lock(mutex_);
  const auto found = sessions_.find(hash);
  if (found == sessions_.end()) return false;
  sessions_.erase(found);
  return true;
}

// The lookup is not constant-time, but a hash found through its timing does not reveal the secret.
std::optional<Principal> LoginSessions::find(Bytes hash, const Acl& acl) const {
  Session session;
  {
    MutexLock lock(mutex_);
    const auto found = sessions_.find(hash);
    if (found == sessions_.end()) return std::nullopt;
    session = found->second;
  }
  if (!lasts(session) || acl.find(session.user->name) != session.user) return std::nullopt;
  return Principal{session.role, session.user, std::string(hash), true, session.ends};
}

}  // namespace sluice
