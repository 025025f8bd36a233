// The connection itself: authentication, protocol, database.
#include "engine/commands/connection.h"

#include "engine/access/acl.h"
#include "engine/clients/pubsub.h"
#include "engine/clients/slow_log.h"
#include "engine/clients/tracking.h"
#include "engine/execution/call.h"
#include "engine/execution/engine.h"
#include "engine/execution/execution.h"
#include "engine/execution/refusal.h"
#include "engine/execution/transaction.h"
#include "engine/ports/group_port.h"

namespace sluice {

namespace {

constexpr Bytes kWrongPassword = "WRONGPASS invalid username-password pair or user is disabled.";

bool authenticate(Call& call, Bytes name, Bytes password) {
  std::shared_ptr<User> user = call.engine.acl().authenticate(name, password);
  if (user == nullptr) {
    log_failed_login(call.engine, call.client, call.args[0], name);
    return fail(call, kWrongPassword);
  }
  call.client.user = std::move(user);
  return true;
}

// Each option takes effect at once, even if a later one is invalid, as in Redis.
bool take_hello_options(Call& call, int& wanted_protocol) {
  wanted_protocol = call.client.protocol;
  if (call.args.size() > 1) {
    int64_t protocol = 0;
    if (!call.integer(1, protocol, "ERR Protocol version is not an integer or out of range")) {
      return false;
    }
    if (protocol < 2 || protocol > 3) return fail(call, "NOPROTO unsupported protocol version");
    wanted_protocol = static_cast<int>(protocol);
  }
  for (size_t at = 2; at < call.args.size(); ++at) {
    const size_t left = call.args.size() - at - 1;
    if (call.option(at, "AUTH") && left >= 2) {
      if (!authenticate(call, call.args[at + 1], call.args[at + 2])) return false;
      at += 2;
    } else if (call.option(at, "SETNAME") && left >= 1) {
      if (!check_client_name(call, ++at)) return false;
      call.client.name = call.args[at];
    } else {
      return fail(call, "ERR Syntax error in HELLO option '" + std::string(call.args[at]) + "'");
    }
  }
  return true;
}

}  // namespace

void auth_command(Call& call) {
  if (call.args.size() > 3) return call.reply.error(errors::kSyntax);
  if (call.args.size() == 2) {
    if (call.engine.acl().default_user_needs_no_password()) {
      return call.reply.error(
          "ERR AUTH <password> called without any password configured for the default user. Are "
          "you sure your configuration is correct?");
    }
    if (authenticate(call, "default", call.args[1])) call.reply.ok();
    return;
  }
  if (authenticate(call, call.args[1], call.args[2])) call.reply.ok();
}

void hello_command(Call& call) {
  int protocol = 0;
  if (!take_hello_options(call, protocol)) return;
  if (call.client.user == nullptr) {
    return call.reply.error(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
        "AUTH <user> <pass> option can be used to authenticate the client and select the "
        "RESP protocol version at the same time");
  }
  call.client.protocol = protocol;
  call.unit.requester.protocol = protocol;
  call.engine.tracking().set_protocol(call.client, protocol);
  call.reply.set_protocol(protocol);
  call.reply.map(7);
  call.reply.bulk("server");
  call.reply.bulk("redis");
  call.reply.bulk("version");
  call.reply.bulk("7.0.15");
  call.reply.bulk("proto");
  call.reply.integer(protocol);
  call.reply.bulk("id");
  call.reply.integer(static_cast<int64_t>(call.client.id));
  call.reply.bulk("mode");
  call.reply.bulk("standalone");
  call.reply.bulk("role");
  const GroupPort* const group = call.engine.server().group();
  call.reply.bulk(group == nullptr || group->view()->leads() ? "master" : "replica");
  call.reply.bulk("modules");
  call.reply.array(0);
}

void echo_command(Call& call) { call.reply.bulk(call.args[1]); }

void ping_command(Call& call) {
  if (call.args.size() > 2) {
    return call.reply.error("ERR wrong number of arguments for 'ping' command");
  }
  if (call.client.protocol == 2 && call.client.subscriptions() != 0) {
    call.reply.array(2);
    call.reply.bulk("pong");
    return call.reply.bulk(call.args.size() == 2 ? call.args[1] : Bytes());
  }
  call.args.size() == 2 ? call.reply.bulk(call.args[1]) : call.reply.simple("PONG");
}

void quit_command(Call& call) {
  call.client.close_after_reply = true;
  call.reply.ok();
}

void reset_command(Call& call) {
  Client& client = call.client;
  end_transaction(call.execution, client);
  call.engine.pubsub().forget(client);
  call.engine.tracking().disable(client);
  call.engine.observe_tracking();
  if (client.monitoring) call.engine.monitors().remove(client.id);
  client.monitoring = false;
  client.database = 0;
  client.protocol = 2;
  client.name.clear();
  // After CLIENT REPLY SKIP, RESET is the command that gets no reply.
  if (client.reply_mode == ReplyMode::kOff) client.reply_mode = ReplyMode::kOn;
  client.skips_next = false;
  client.no_touch = false;
  client.user = call.engine.acl().user_at_connect();
  call.reply.set_protocol(2);
  call.reply.simple("RESET");
}

void select_command(Call& call) {
  if (call.database_number(1, call.client.database)) call.reply.ok();
}

}  // namespace sluice
