#include "net/config/token_setting.h"

#include <algorithm>
#include <fstream>

#include "engine/access/passwords.h"

namespace sluice {

namespace {

constexpr const char* kRoleNames[kRoles] = {"read", "operate", "admin"};

}  // namespace

const char* role_name(Role role) { return kRoleNames[static_cast<size_t>(role)]; }

std::optional<Role> parse_role(Bytes name) {
  for (size_t i = 0; i < kRoles; ++i) {
    if (equals_ignore_case(name, kRoleNames[i])) return static_cast<Role>(i);
  }
  return std::nullopt;
}

namespace {

// Without the user.
Result<TokenSetting> parse_token(const std::string& role_word, const std::string& secret) {
  const std::optional<Role> role = parse_role(role_word);
  if (!role) return invalid("the role must be read, operate or admin");
  TokenSetting token;
  token.role = *role;
  if (secret.starts_with('#')) {
    token.hash = to_lower(Bytes(secret).substr(1));
    if (!is_password_hash(token.hash)) return invalid("the hash must be 64 hexadecimal digits");
  } else if (secret.starts_with('>')) {
    if (secret.size() - 1 < kLeastTokenBytes) return invalid("a token has at least 16 characters");
    token.hash = hash_password(Bytes(secret).substr(1));
  } else {
    return invalid("the token must be >text, or # and its SHA-256");
  }
  return token;
}

}  // namespace

Status add_token_settings(std::span<const std::string> words, std::vector<TokenSetting>& tokens) {
  while (!words.empty()) {
    if (words.size() < 2) return invalid("wrong number of arguments");
    Result<TokenSetting> parsed = parse_token(words[0], words[1]);
    if (!parsed.ok()) return parsed.status();
    TokenSetting& token = *parsed;
    words = words.subspan(2);
    if (!words.empty() && equals_ignore_case(words[0], "user")) {
      if (words.size() < 2) return invalid("wrong number of arguments");
      token.user = words[1];
      // A rule for every ACL user; it also makes the words separable again.
      const bool plain = !token.user.empty() && token.user.find(' ') == std::string::npos;
      if (!plain) return invalid("the name of a user must not contain blanks");
      words = words.subspan(2);
    }
    std::erase_if(tokens, [&](const TokenSetting& old) { return old.hash == token.hash; });
    tokens.push_back(std::move(token));
    if (tokens.size() > kMaxTokens) return invalid("there may be at most 1000 tokens");
  }
  return Status();
}

std::string token_words(const TokenSetting& token) {
  std::string text = std::string(role_name(token.role)) + " #" + token.hash;
  if (!token.user.empty()) text += " user " + token.user;
  return text;
}

Result<std::string> read_secret(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  if (file) std::getline(file, text);
  if (text.ends_with('\r')) text.pop_back();
  if (!text.empty()) return text;
  return io_error("cannot read a password or token in the first line of " + path);
}

Result<std::string> read_token(const std::string& path) {
  Result<std::string> token = read_secret(path);
  if (!token.ok()) return token;
  const bool plain =
      std::all_of(token->begin(), token->end(), [](char c) { return c > ' ' && c <= '~'; });
  if (plain && token->size() >= kLeastTokenBytes) return token;
  return invalid("the first line of " + path +
                 " must be a token of at least 16 characters: letters, digits and signs of ASCII, "
                 "no blanks");
}

std::string token_settings_text(std::span<const TokenSetting> tokens) {
  std::string text;
  for (const TokenSetting& token : tokens) {
    if (!text.empty()) text += ' ';
    text += token_words(token);
  }
  return text;
}

}  // namespace sluice
