// The requester: the role of a token, and log-ins with the name and password of an ACL user.
#include "engine/execution/engine.h"
#include "net/admin/api.h"
#include "net/admin/routes.h"
#include "net/http/http_service.h"
#include "net/process/wall_clock.h"

namespace sluice {

namespace {

using nlohmann::json;
using std::chrono::milliseconds;

// Tells the page what to show. Open to everybody, because it only reveals facts about the
// requester.
void get_session(Exchange& exchange) {
  if (QueryReader(exchange, QueryReader::Selects::kNothing).failed()) return;
  const bool tokens = !exchange.service().tokens()->empty();
  const bool known = !tokens || exchange.request().header("authorization") != nullptr;
  const Principal& principal = exchange.principal();
  json session = {{"role", nullptr}, {"user", nullptr}, {"tokens", tokens}, {"now", wall_ms()}};
  const ServerState& state = exchange.service().state();
  const auto port_of = [known](const Listener& listener) {
    return known && listener.port() != 0 ? json(listener.port()) : json(nullptr);
  };
  session["port"] = port_of(*state.listener);
  session["tls_port"] = port_of(*state.tls_listener);
  const bool needed = state.engine->acl().user_at_connect() == nullptr;
  session["password_needed"] = known ? json(needed) : json(nullptr);
  if (known) session["role"] = role_name(principal.role);
  if (principal.logged_in) put_bytes(session, "user", principal.user->name);
  respond_json(exchange, session);
}

// The address without its port.
Bytes host_of_peer(Bytes peer) { return peer.substr(0, peer.rfind(':')); }

// Checks the password like AUTH of a RESP client: with its delay and its entry in ACL LOG. If it is
// wrong, or there were too many wrong ones, responds with the problem and returns false.
bool authenticate(Exchange& exchange, const std::string& name, const std::string& password) {
  LoginSessions& sessions = exchange.service().sessions();
  const Bytes address = host_of_peer(exchange.request().peer);
  if (!sessions.may_try(address)) {
    const milliseconds wait = LoginSessions::kTriesWindow;
    exchange.respond(
        problem_of_error("TOOMANYTRIES retry_after_ms=" + std::to_string(wait.count())));
    return false;
  }
  const RespValue reply = exchange.run({"AUTH", name, password});
  if (reply.is_error() && reply.text.starts_with("WRONGPASS")) sessions.note_failure(address);
  return !respond_error(exchange, reply);
}

void begin_session(Exchange& exchange) {
  QueryReader query(exchange, QueryReader::Selects::kNothing);
  BodyReader body(exchange);
  const auto name = body.bytes("user");
  const auto password = body.bytes("password");
  if (!name) body.fail("user", "is required");
  if (!password) body.fail("password", "is required");
  if (query.failed() || body.failed()) return;
  const std::shared_ptr<User> user = exchange.service().state().engine->acl().find(*name);
  // The rules before the check of the password: a change in between ends the session.
  const auto rules = user == nullptr ? nullptr : user->rules();
  if (!authenticate(exchange, *name, *password)) return;
  if (rules == nullptr) return exchange.respond(problem_of_error("WRONGPASS"));
  // With RESP any password would do. Here every page and address with access would be this user.
  if (rules->needs_no_password()) {
    return exchange.respond(problem(403, "NOPERM", "A user without a password cannot log in."));
  }
  const std::optional<Role> role = role_of_rules(*rules);
  if (!role)
    return exchange.respond(
        problem(403, "NOPERM", "The user does not have permission to read queues."));
  LoginSessions& sessions = exchange.service().sessions();
  json answer = {{"role", role_name(*role)},
                 {"expires", wall_ms() + sessions.lifetime().count()},
                 {"token", sessions.begin(user, rules, *role)}};
  put_bytes(answer, "user", *name);
  respond_json(exchange, answer, 201);
}

void end_session(Exchange& exchange) {
  if (QueryReader(exchange, QueryReader::Selects::kNothing).failed()) return;
  const Principal& principal = exchange.principal();
  const bool ended = principal.logged_in && exchange.service().sessions().end(principal.token);
  if (ended) exchange.service().users_changed();
  respond_json(exchange, {{"ended", ended}});
}

}  // namespace

std::vector<Route> session_routes() {
  constexpr const char* kSession = "/api/v1/session";
  return {
      {.pattern = kSession,
       .access = Access::kOpen,
       .handler = get_session,
       .summary = "The role of the given token; null if a token is required.",
       .answer = "Session",
       .while_loading = true,
       .problems = {422}},
      {.method = HttpMethod::post,
       .pattern = kSession,
       .access = Access::kOpen,
       .handler = begin_session,
       .summary = "Logs in with the name and the password of an ACL user.",
       .body = "LogIn",
       .answer = "NewSession",
       .status = 201,
       .problems = {422}},
      {.method = HttpMethod::delete_,
       .pattern = kSession,
       .access = Access::kReady,
       .handler = end_session,
       .summary = "Ends the session; a token stays valid.",
       .answer = "EndedSession",
       .problems = {422}},
  };
}

}  // namespace sluice
