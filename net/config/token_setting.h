// Roles of the HTTP side, and the tokens that the configuration names (`http-token`).
//
// Plain data and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/bytes.h"

namespace sluice {

enum class Role : uint8_t { kRead, kOperate, kAdmin };
inline constexpr size_t kRoles = 3;
const char* role_name(Role role);
std::optional<Role> parse_role(Bytes name);

inline constexpr size_t kMaxTokens = 1000;

struct TokenSetting {
  Role role = Role::kRead;
  std::string hash;  // SHA-256, as 64 hexadecimal digits
  std::string user;  // whose rules hold besides those of the role; empty: nobody's

  // By which people name it: the beginning of the hash. It gives nothing away.
  Bytes id() const { return Bytes(hash).substr(0, 16); }
  bool operator==(const TokenSetting&) const = default;
};

// Adds the tokens of such words to `tokens`; one that is there already gets its new role and user.
// Of each: a role, >text or #hash, and perhaps `user` and a name. Empty: done; else what is wrong.
std::string parse_token_settings(std::span<const std::string> words,
                                 std::vector<TokenSetting>& tokens);
// The same words again, with hashes only, divided by blanks.
std::string token_words(const TokenSetting& token);
std::string token_settings_text(std::span<const TokenSetting> tokens);

}  // namespace sluice
