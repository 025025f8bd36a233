// Roles of the HTTP side, and the tokens that the configuration defines (`http-token`).
//
// Plain data; the functions are pure, but for those that read a file.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/status.h"

namespace sluice {

enum class Role : uint8_t { kRead, kOperate, kAdmin };
inline constexpr size_t kRoles = 3;
const char* role_name(Role role);
std::optional<Role> parse_role(Bytes name);

inline constexpr size_t kMaxTokens = 1000;
inline constexpr size_t kLeastTokenBytes = 16;

struct TokenSetting {
  Role role = Role::kRead;
  std::string hash;  // SHA-256, as 64 hexadecimal digits
  std::string user;  // the ACL user whose rules apply besides those of the role; empty: none

  // The name shown to people: the beginning of the hash, which reveals nothing.
  Bytes id() const { return Bytes(hash).substr(0, 16); }
  bool operator==(const TokenSetting&) const = default;
};

// Adds tokens to `tokens`; an existing token gets its new role and user. Words of a token: a role,
// >text or #hash, and optionally `user` and a name. kInvalid for other words; some tokens may have
// been added then.
Status add_token_settings(std::span<const std::string> words, std::vector<TokenSetting>& tokens);
// The same words again, with hashes only, separated by blanks.
std::string token_words(const TokenSetting& token);
std::string token_settings_text(std::span<const TokenSetting> tokens);

// The first line of a file that holds a password or a token, however it ends. An error names the
// file.
Result<std::string> read_secret(const std::string& path);
// The same for a token that both sides read (replication-token-file): long enough that nobody
// guesses it, and of characters that a header of HTTP can have.
Result<std::string> read_token(const std::string& path);

}  // namespace sluice
