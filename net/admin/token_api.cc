// Tokens at run time: which there are, another one, one less. Their secrets are told once, to
// whoever makes them; nobody else, the server included, knows more than their SHA-256.
//
// They are the configuration's `http-token`: a change is CONFIG SET of it, and its lines in the
// configuration's file follow at once, so that a restart finds the same.
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

namespace sluice {

namespace {

using nlohmann::json;

constexpr const char* kDirective = "http-token";
constexpr size_t kSecretDigits = 64;

// What the role does not say: the rules of the user that the token speaks for. False, with the
// problem responded: he may not.
bool may_configure(Exchange& exchange, Bytes subcommand) {
  const Command* config = CommandTable::instance().find("config");
  const Command* command = CommandTable::find_subcommand(*config, subcommand);
  const Bytes words[] = {"config", subcommand, kDirective, ""};
  const size_t count = subcommand == "get" ? 3 : 4;
  const auto verdict =
      exchange.principal().user->rules()->check(*command, std::span(words).first(count));
  if (verdict.denial == Denial::kNone) return true;
  exchange.respond(problem(403, "NOPERM", "The user of the token may not do this."));
  return false;
}

json shown(const TokenSetting& token) {
  json line = {{"id", std::string(token.id())}, {"role", role_name(token.role)}, {"user", nullptr}};
  if (!token.user.empty()) put_bytes(line, "user", token.user);
  return line;
}

void list_tokens(Exchange& exchange) {
  QueryReader query(exchange);
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

// A change of the list: what is to be answered instead, or nothing.
using TokenChange = std::function<std::optional<HttpResponse>(std::vector<TokenSetting>& tokens)>;

// Changes the list, and the configuration's file. False, with the problem responded: nothing has
// changed. `kept`: a restart will find it so.
bool change_tokens(Exchange& exchange, const TokenChange& change, bool& kept) {
  Config& config = exchange.service().config();
  std::optional<HttpResponse> refusal;
  const std::string error = config.update(kDirective, [&](const std::string& now) {
    std::vector<TokenSetting> tokens;
    CHECK(parse_token_settings(config_special::split_value(now), tokens).empty());
    refusal = change(tokens);
    return refusal ? now : token_settings_text(tokens);
  });
  if (!refusal && !error.empty()) refusal = problem_of_error(error);
  if (refusal) {
    exchange.respond(std::move(*refusal));
    return false;
  }
  const std::string why = config.keep(kDirective);
  kept = why.empty();
  if (!kept) spdlog::warn("A change of the HTTP tokens lasts until the next start only: {}", why);
  return true;
}

void add_token(Exchange& exchange) {
  QueryReader query(exchange);
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
  bool kept = false;
  const bool added = change_tokens(
      exchange,
      [&](std::vector<TokenSetting>& tokens) -> std::optional<HttpResponse> {
        if (tokens.size() == kMaxTokens) {
          return problem(409, "TOKENLIMIT", "There are as many tokens as there may be.");
        }
        tokens.push_back(token);
        return std::nullopt;
      },
      kept);
  if (!added) return;
  json answer = shown(token);
  answer["token"] = secret;
  answer["kept"] = kept;
  respond_json(exchange, answer, 201);
}

void remove_token(Exchange& exchange) {
  QueryReader query(exchange);
  if (query.failed() || !may_configure(exchange, "set")) return;
  const std::string& id = exchange.path("id");
  bool kept = false;
  const bool removed = change_tokens(
      exchange,
      [&](std::vector<TokenSetting>& tokens) -> std::optional<HttpResponse> {
        const size_t gone =
            std::erase_if(tokens, [&](const TokenSetting& token) { return token.id() == id; });
        if (gone == 0) return problem(404, "NOTOKEN", "There is no such token.");
        // Without any this machine may read all, which is more than anybody asks for here.
        if (tokens.empty()) return problem(409, "LASTTOKEN", "It is the last token.");
        return std::nullopt;
      },
      kept);
  if (removed) respond_json(exchange, {{"id", id}, {"kept", kept}});
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
       .summary = "Makes a token; its secret is told in this answer alone.",
       .body = "NewToken",
       .answer = "MadeToken",
       .status = 201,
       .problems = {409}},
      {.method = HttpMethod::delete_,
       .pattern = "/api/v1/tokens/{id}",
       .access = Access::kAdmin,
       .handler = remove_token,
       .summary = "Removes a token, and ends what it is being answered.",
       .answer = "RemovedToken",
       .problems = {409}},
  };
}

}  // namespace sluice
