#include "net/http/tokens.h"

#include "engine/access/passwords.h"
#include "net/http/login_sessions.h"

namespace sluice {

namespace {

// The commands of each role, as rules of ACL SETUSER. Reading changes nothing (its routes use only
// Q.CONFIG GET, although Q.CONFIG can also change); operating covers jobs and queues, including DEL
// of a queue; administration covers the rest of the HTTP side.
std::vector<const char*> role_rules(Role role) {
  std::vector<const char*> rules = {"on",     "nopass",    "~*",       "-@all",
                                    "+q.get", "+q.list",   "+q.stats", "+q.events",
                                    "+q.log", "+q.config", "+info"};
  if (role == Role::kRead) return rules;
  for (const char* rule : {"+q.add", "+q.pop", "+q.ack", "+q.nack", "+q.touch", "+q.cancel",
                           "+q.move", "+q.retry", "+q.purge", "+del"}) {
    rules.push_back(rule);
  }
  if (role != Role::kAdmin) return rules;
  for (const char* rule : {"+bgsave", "+config|get", "+config|set"}) rules.push_back(rule);
  return rules;
}

// Whether no token is required.
bool is_open(Access access, bool no_tokens) {
  return access == Access::kOpen ||
         (no_tokens && (access == Access::kReady || access == Access::kRead));
}

// The least role that satisfies an access.
Role least_role(Access access) {
  if (access == Access::kAdmin || access == Access::kReplicate) return Role::kAdmin;
  return access == Access::kOperate ? Role::kOperate : Role::kRead;
}

}  // namespace

std::shared_ptr<User> user_of_role(Role role) {
  AclRules rules(false);
  for (const char* rule : role_rules(role)) CHECK(rules.apply(rule) == nullptr);
  return std::make_shared<User>("http-" + std::string(role_name(role)), std::move(rules));
}

Tokens::Tokens(std::vector<TokenSetting> settings, const LoginSessions* sessions,
               std::string replication)
    : settings_(std::move(settings)), sessions_(sessions), replication_(std::move(replication)) {
  for (size_t i = 0; i < kRoles; ++i) role_users_[i] = user_of_role(static_cast<Role>(i));
}

bool Tokens::is_replication(Access access, Bytes hash) const {
  return !replication_.empty() && same_hash(replication_, hash) && access == Access::kReplicate;
}

std::optional<Principal> Tokens::find(Access access, Bytes hash, const Acl& acl) const {
  if (is_replication(access, hash)) {
    return Principal{Role::kAdmin, role_users_[static_cast<size_t>(Role::kRead)],
                     std::string(hash)};
  }
  const TokenSetting* found = nullptr;
  for (const TokenSetting& setting : settings_) {
    if (same_hash(setting.hash, hash)) found = &setting;
  }
  if (found == nullptr && sessions_ != nullptr) return sessions_->find(hash, acl);
  if (found == nullptr) return std::nullopt;
  if (found->user.empty()) {
    return Principal{found->role, role_users_[static_cast<size_t>(found->role)], found->hash};
  }
  // The tokens of a disabled or deleted user are invalid.
  std::shared_ptr<User> user = acl.find(found->user);
  if (user == nullptr || !user->rules()->enabled()) return std::nullopt;
  return Principal{found->role, std::move(user), found->hash};
}

Tokens::Answer Tokens::check(Access access, const std::string* authorization,
                             const Acl& acl) const {
  Answer answer;
  if (authorization != nullptr) {
    const Bytes value = *authorization;
    constexpr Bytes kScheme = "bearer ";
    const bool bearer = value.size() > kScheme.size() &&
                        equals_ignore_case(value.substr(0, kScheme.size()), kScheme);
    std::optional<Principal> found;
    if (bearer) found = find(access, hash_password(value.substr(kScheme.size())), acl);
    // Also if no token is required: a wrong token is a mistake that should be reported.
    if (!found) return {Verdict::kBadToken, {}};
    answer.principal = std::move(*found);
    answer.verdict =
        answer.principal.role >= least_role(access) ? Verdict::kGranted : Verdict::kForbidden;
    return answer;
  }
  if (is_open(access, empty())) {
    answer.verdict = Verdict::kGranted;
    answer.principal = {Role::kRead, role_users_[static_cast<size_t>(Role::kRead)], {}};
  }
  return answer;
}

bool Tokens::still_grants(Access access, const Principal& principal, const Acl& acl) const {
  // The user may have been deleted and created again.
  if (principal.user->deleted.load()) return false;
  if (principal.token.empty()) return is_open(access, empty());
  const std::optional<Principal> now = find(access, principal.token, acl);
  return now && now->role == principal.role && now->user->name == principal.user->name;
}

}  // namespace sluice
