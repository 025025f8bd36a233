// Roles of the HTTP side, and one `http-token` line of the configuration.
//
// Plain data and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "engine/base/bytes.h"

namespace sluice {

enum class Role : uint8_t { kRead, kOperate, kAdmin };
inline constexpr size_t kRoles = 3;
const char* role_name(Role role);
std::optional<Role> parse_role(Bytes name);

struct TokenSetting {
  Role role = Role::kRead;
  std::string hash;  // SHA-256, as 64 hexadecimal digits
  std::string user;  // whose rules hold besides those of the role; empty: nobody's
};

// Reads the words of such a line: role, >text or #hash, and perhaps `user` and a name. Empty: done;
// else what is wrong.
std::string parse_token_setting(std::span<const std::string> words, TokenSetting& token);

}  // namespace sluice
