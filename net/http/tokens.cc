#include "net/http/tokens.h"

#include "engine/passwords.h"

namespace sluice {

namespace {

constexpr const char* kRoleNames[kRoles] = {"read", "operate", "admin"};

// What a role may run, as rules of ACL SETUSER. Reading changes nothing (its routes only ask
// Q.CONFIG, which is one command with the change); operating is all about jobs; administration is
// the rest of what the HTTP side has.
std::vector<const char*> role_rules(Role role) {
  std::vector<const char*> rules = {"on",      "nopass",   "~*",        "-@all",     "+q.get",
                                    "+q.list", "+q.stats", "+q.events", "+q.config", "+info"};
  if (role == Role::kRead) return rules;
  for (const char* rule : {"+q.add", "+q.pop", "+q.ack", "+q.nack", "+q.touch", "+q.cancel",
                           "+q.move", "+q.retry", "+q.purge"}) {
    rules.push_back(rule);
  }
  if (role == Role::kAdmin) rules.push_back("+bgsave");
  return rules;
}

std::shared_ptr<User> user_of_role(Role role) {
  AclRules rules(false);
  for (const char* rule : role_rules(role)) CHECK(rules.apply(rule) == nullptr);
  return std::make_shared<User>("http-" + std::string(role_name(role)), std::move(rules));
}

// The least role that satisfies an access.
Role least_role(Access access) {
  if (access == Access::kAdmin) return Role::kAdmin;
  return access == Access::kOperate ? Role::kOperate : Role::kRead;
}

}  // namespace

const char* role_name(Role role) { return kRoleNames[static_cast<size_t>(role)]; }

std::optional<Role> parse_role(Bytes name) {
  for (size_t i = 0; i < kRoles; ++i) {
    if (equals_ignore_case(name, kRoleNames[i])) return static_cast<Role>(i);
  }
  return std::nullopt;
}

std::string parse_token_setting(std::span<const std::string> words, TokenSetting& token) {
  if (words.size() != 2 && words.size() != 4) return "wrong number of arguments";
  const std::optional<Role> role = parse_role(words[0]);
  if (!role) return "the role must be read, operate or admin";
  token.role = *role;
  const std::string& secret = words[1];
  if (secret.starts_with('#')) {
    token.hash = to_lower(Bytes(secret).substr(1));
    if (!is_password_hash(token.hash)) return "the hash must be 64 hexadecimal digits";
  } else if (secret.starts_with('>')) {
    constexpr size_t kLeastBytes = 16;
    if (secret.size() - 1 < kLeastBytes) return "a token has at least 16 characters";
    token.hash = hash_password(Bytes(secret).substr(1));
  } else {
    return "the token must be >text, or # and its SHA-256";
  }
  if (words.size() == 2) return "";
  if (!equals_ignore_case(words[2], "user")) return "the third word must be 'user'";
  token.user = words[3];
  return "";
}

Tokens::Tokens(std::vector<TokenSetting> settings) : settings_(std::move(settings)) {
  for (size_t i = 0; i < kRoles; ++i) role_users_[i] = user_of_role(static_cast<Role>(i));
}

std::optional<Principal> Tokens::find(Bytes token, const Acl& acl) const {
  const std::string hash = hash_password(token);
  const TokenSetting* found = nullptr;
  for (const TokenSetting& setting : settings_) {
    if (same_hash(setting.hash, hash)) found = &setting;
  }
  if (found == nullptr) return std::nullopt;
  if (found->user.empty()) {
    return Principal{found->role, role_users_[static_cast<size_t>(found->role)]};
  }
  // A user that is off, or gone, takes his tokens with him.
  std::shared_ptr<User> user = acl.find(found->user);
  if (user == nullptr || !user->rules()->enabled()) return std::nullopt;
  return Principal{found->role, std::move(user)};
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
    if (bearer) found = find(value.substr(kScheme.size()), acl);
    // Also where nothing is needed: a wrong token is a mistake that its owner wants to hear of.
    if (!found) return {Verdict::kBadToken, {}};
    answer.principal = std::move(*found);
    answer.verdict =
        answer.principal.role >= least_role(access) ? Verdict::kGranted : Verdict::kForbidden;
    return answer;
  }
  const bool open =
      access == Access::kOpen || (empty() && (access == Access::kReady || access == Access::kRead));
  if (open) {
    answer.verdict = Verdict::kGranted;
    answer.principal = {Role::kRead, role_users_[static_cast<size_t>(Role::kRead)]};
  }
  return answer;
}

}  // namespace sluice
