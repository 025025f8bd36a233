// Tokens at run time: list, create, revoke. A secret is returned once, to the client that creates
// the token; the server itself stores only its SHA-256.
//
// Tokens are the configuration's `http-token`: a change is a CONFIG SET of it, and its lines in the
// configuration file are updated at once, so that a restart finds the same tokens.
#include <spdlog/spdlog.h>

#include <functional>
#include <optional>

#include "engine/access/passwords.h"
#include "engine/base/check.h"
#include "engine/table/command.h"
#include "net/admin/api.h"
#include "net/admin/routes.h"
#include "net/config/config.h"
#include "net/config/config_special.h"
#include "net/http/http_service.h"
#include "net/http/tokens.h"

namespace sluice {

namespace {

using nlohmann::json;

constexpr const char* kDirective = "http-token";

// Checks the rules of the token's user, besides the role. If they do not allow it, responds with
// the problem and returns false.
bool may_configure(Exchange& exchange, Bytes subcommand) {
  const Command* config = CommandTable::instance().find("config");
  const Command* command = CommandTable::find_subcommand(*config, subcommand);
  const Bytes words[] = {"config", subcommand, kDirective, ""};
  const size_t count = subcommand == "get" ? 3 : 4;
  const auto verdict =
      exchange.principal().user->rules()->check(*command, std::span(words).first(count));
  if (verdict.denial == Denial::kNone) return true;
  exchange.respond(problem(403, "NOPERM", "The token's user does not have this permission."));
  return false;
}

json shown(const TokenSetting& token) {
  json line = {{"id", std::string(token.id())}, {"role", role_name(token.role)}, {"user", nullptr}};
  if (!token.user.empty()) put_bytes(line, "user", token.user);
  return line;
}

void list_tokens(Exchange& exchange) {
  QueryReader query(exchange, QueryReader::Selects::kNothing);
  if (query.failed() || !may_configure(exchange, "get")) return;
  const auto tokens = exchange.service().tokens();
  json lines = json::array();
  for (const TokenSetting& token : tokens->settings()) {
    json line = shown(token);
    line["own"] = token.hash == exchange.principal().token;
    lines.push_back(std::move(line));
  }
  respond_json(exchange, {{"tokens", std::move(lines)}});
}

// Changes the list. Returns a response if it must be sent instead, else nothing.
using TokenChange = std::function<std::optional<HttpResponse>(std::vector<TokenSetting>& tokens)>;

// Changes the list and the configuration file. On failure nothing has changed; responds with the
// problem and returns nothing. Otherwise returns whether a restart will find the change.
std::optional<bool> change_tokens(Exchange& exchange, const TokenChange& change) {
  Config& config = exchange.service().config();
  std::optional<HttpResponse> refusal;
  const Status status = config.update(kDirective, [&](const std::string& now) {
    std::vector<TokenSetting> tokens;
    CHECK(add_token_settings(config_special::split_value(now), tokens).ok());
    refusal = change(tokens);
    return refusal ? now : token_settings_text(tokens);
  });
  if (!refusal && !status.ok()) refusal = problem_of_error(status.message());
  if (refusal) {
    exchange.respond(std::move(*refusal));
    return std::nullopt;
  }
  exchange.note_change({"CONFIG", "SET", kDirective}, 1);
  const Status in_file = config.keep(kDirective);
  if (!in_file.ok()) {
    spdlog::warn("A change of the HTTP tokens is lost at the next start: {}", in_file.message());
  }
  return in_file.ok();
}

void add_token(Exchange& exchange) {
  QueryReader query(exchange, QueryReader::Selects::kNothing);
  BodyReader body(exchange);
  const auto name = body.bytes("role");
  const std::optional<Role> role = name ? parse_role(*name) : std::nullopt;
  if (!role) body.fail("role", name.value_or(""), {"read", "operate", "admin"});
  const std::string user = body.bytes("user").value_or("");
  const bool known = user.empty() || exchange.service().state().engine->acl().find(user) != nullptr;
  if (!known) body.fail("user", "must be the name of an ACL user");
  if (query.failed() || body.failed() || !may_configure(exchange, "set")) return;
  const std::string secret = random_hex(kSecretDigits);
  const TokenSetting token{*role, hash_password(secret), user};
  const auto kept = change_tokens(
      exchange, [&](std::vector<TokenSetting>& tokens) -> std::optional<HttpResponse> {
        if (tokens.size() == kMaxTokens) {
          return problem(409, "TOKENLIMIT", "The maximum number of tokens has been reached.");
        }
        tokens.push_back(token);
        return std::nullopt;
      });
  if (!kept) return;
  json answer = shown(token);
  answer["token"] = secret;
  answer["kept"] = *kept;
  respond_json(exchange, answer, 201);
}

void remove_token(Exchange& exchange) {
  QueryReader query(exchange, QueryReader::Selects::kNothing);
  if (query.failed() || !may_configure(exchange, "set")) return;
  const std::string& id = exchange.path("id");
  const auto kept = change_tokens(
      exchange, [&](std::vector<TokenSetting>& tokens) -> std::optional<HttpResponse> {
        const size_t gone =
            std::erase_if(tokens, [&](const TokenSetting& token) { return token.id() == id; });
        if (gone == 0) return problem(404, "NOTOKEN", "No such token.");
        // Without any token the local machine may read everything, which nobody has asked for here.
        if (tokens.empty()) return problem(409, "LASTTOKEN", "The last token cannot be revoked.");
        return std::nullopt;
      });
  if (kept) respond_json(exchange, {{"id", id}, {"kept", *kept}});
}

}  // namespace

std::vector<Route> token_routes() {
  constexpr const char* kTokens = "/api/v1/tokens";
  return {
      {.pattern = kTokens,
       .access = Access::kAdmin,
       .handler = list_tokens,
       .summary = "The tokens, without their secrets.",
       .answer = "Tokens"},
      {.method = HttpMethod::post,
       .pattern = kTokens,
       .access = Access::kAdmin,
       .handler = add_token,
       .summary = "Creates a token; its secret is only returned in this response.",
       .body = "NewToken",
       .answer = "MadeToken",
       .status = 201,
       .problems = {409}},
      {.method = HttpMethod::delete_,
       .pattern = "/api/v1/tokens/{id}",
       .access = Access::kAdmin,
       .handler = remove_token,
       .summary = "Revokes a token, and ends its requests in progress.",
       .answer = "RemovedToken",
       .problems = {409}},
  };
}

}  // namespace sluice
