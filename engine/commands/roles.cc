// ROLE, FAILOVER and REPLICAOF: which node of a group is the primary. A server without a group is a
// primary without standbys.
#include <memory>
#include <optional>
#include <string>

#include "engine/base/limits.h"
#include "engine/base/numbers.h"
#include "engine/commands/server.h"
#include "engine/execution/call.h"
#include "engine/execution/engine.h"
#include "engine/execution/execution.h"
#include "engine/ports/group_port.h"

namespace sluice {

namespace {

int64_t offset_of(Lsn lsn) { return static_cast<int64_t>(lsn); }

void reply_standbys(Reply& reply, const GroupView& view) {
  reply.array(static_cast<size_t>(view.applied_by(0)));
  for (const GroupMember& member : view.members) {
    if (!view.is_online(member)) continue;
    reply.array(3);
    reply.bulk(member.host);
    reply.bulk(std::to_string(member.client_port()));
    reply.bulk(std::to_string(member.lsn));
  }
}

// Redis's words for the states of a replica.
const char* link_state(const GroupView& view, int64_t age_ms) {
  if (view.role == GroupRole::kStarting) return "sync";
  return view.is_linked(age_ms) ? "connected" : "connect";
}

}  // namespace

void role_command(Call& call) {
  GroupPort* const group = call.engine.server().group();
  const auto view = group == nullptr ? std::make_shared<const GroupView>() : group->view();
  if (group == nullptr || view->leads()) {
    call.reply.array(3);
    call.reply.bulk("master");
    call.reply.integer(offset_of(view->lsn));
    return reply_standbys(call.reply, *view);
  }
  const GroupMember* const primary = view->primary();
  call.reply.array(5);
  call.reply.bulk("slave");
  call.reply.bulk(primary == nullptr ? "" : primary->host);
  call.reply.integer(primary == nullptr ? 0 : primary->client_port());
  call.reply.bulk(link_state(*view, group->view_age_ms()));
  call.reply.integer(offset_of(view->lsn));
}

void replicaof_command(Call& call) {
  GroupPort* const group = call.engine.server().group();
  const bool no_one = call.option(1, "NO") && call.option(2, "ONE");
  if (no_one && (group == nullptr || group->view()->leads())) return call.reply.ok();
  if (!no_one) {
    const auto port = parse_i64(call.args[2]);
    if (!port || *port < 0 || *port > kMaxPort) return call.reply.error("ERR Invalid master port");
  }
  if (group == nullptr) {
    return call.reply.error("ERR this server cannot be a replica of another one");
  }
  call.reply.error(
      "ERR the journal in etcd decides which node of the group is the primary. Use FAILOVER at the "
      "primary");
}

namespace {

struct FailoverOptions {
  Bytes host;  // empty: any standby
  int64_t port = 0;
  int64_t timeout_ms = 0;
  bool abort = false;
  bool force = false;
};

// Parses the arguments in Redis's order. Nothing, with the error replied, if they are not valid.
std::optional<FailoverOptions> parse_failover(Call& call) {
  FailoverOptions options;
  const size_t count = call.args.size();
  for (size_t at = 1; at < count; ++at) {
    if (call.option(at, "TIMEOUT") && at + 1 < count && options.timeout_ms == 0) {
      if (!call.integer(++at, options.timeout_ms)) return std::nullopt;
      if (options.timeout_ms > 0) continue;
      call.reply.error("ERR FAILOVER timeout must be greater than 0");
      return std::nullopt;
    }
    if (call.option(at, "TO") && at + 2 < count && options.host.empty()) {
      options.host = call.args[at + 1];
      at += 2;
      if (!call.integer(at, options.port)) return std::nullopt;
      continue;
    }
    bool* const flag = call.option(at, "ABORT")   ? &options.abort
                       : call.option(at, "FORCE") ? &options.force
                                                  : nullptr;
    if (flag == nullptr || *flag) {
      call.reply.error(errors::kSyntax);
      return std::nullopt;
    }
    *flag = true;
  }
  if (!options.abort || count == 2) return options;
  call.reply.error(errors::kSyntax);
  return std::nullopt;
}

const GroupMember* find_target(const GroupView& view, const FailoverOptions& options) {
  for (const GroupMember& member : view.members) {
    const bool port = member.port == options.port || member.tls_port == options.port;
    if (view.is_standby(member) && port && member.host == options.host) return &member;
  }
  return nullptr;
}

// Why a hand-over cannot begin, in Redis's words; empty if it can.
Bytes failover_refusal(const GroupView& view, const FailoverOptions& options) {
  if (view.role == GroupRole::kResigning) return "ERR FAILOVER already in progress.";
  if (!view.leads()) return "ERR FAILOVER is not valid when server is a replica.";
  if (view.standbys() == 0) return "ERR FAILOVER requires connected replicas.";
  if (options.force && (options.timeout_ms == 0 || options.host.empty())) {
    return "ERR FAILOVER with force option requires both a timeout and target HOST and IP.";
  }
  if (!options.host.empty() && find_target(view, options) == nullptr) {
    return "ERR FAILOVER target HOST and PORT is not a replica.";
  }
  return {};
}

void reply_status(Reply& reply, const Status& status) {
  status.ok() ? reply.ok() : reply.error("ERR " + status.message());
}

// The standby is far behind: the answer comes as writes are held for it, or it is refused.
void wait_for_standby(Call& call, const std::string& to, int64_t timeout_ms) {
  auto waiter = std::make_shared<Waiter>();
  waiter->timed_out = [](const Waiter&, Reply& reply) {
    reply.error("ERR the hand-over waits still: FAILOVER ABORT ends it");
  };
  call.block({}, waiter);
  const auto answer = [waiter](const Status& status) {
    if (!waiter->claim()) return;
    ByteBuffer bytes;
    RespReply reply(bytes, waiter->protocol);
    reply_status(reply, status);
    waiter->port->deliver_blocked_reply(std::move(bytes), 0);
  };
  const Status status = call.engine.server().group()->hand_over(to, timeout_ms, answer);
  if (!status.ok()) answer(status);
}

// FAILOVER PAUSE and RESUME, which Redis does not have. They work at every node.
void pause_group(Call& call, bool resumes) {
  int64_t for_ms = 0;
  if (call.args.size() != (resumes ? 2 : 3)) return call.reply.error(errors::kSyntax);
  if (!resumes) {
    if (!call.integer(2, for_ms)) return;
    if (for_ms < 1 || for_ms > kMaxPauseMs) {
      return call.reply.error("ERR FAILOVER PAUSE takes 1 to " + std::to_string(kMaxPauseMs) +
                              " milliseconds");
    }
  }
  GroupPort* const group = call.engine.server().group();
  if (group == nullptr) return call.reply.error("ERR this server has no group");
  reply_status(call.reply, group->pause(for_ms));
}

}  // namespace

void failover_command(Call& call) {
  if (call.args.size() > 1) {
    const bool resumes = call.option(1, "RESUME");
    if (resumes || call.option(1, "PAUSE")) return pause_group(call, resumes);
  }
  const std::optional<FailoverOptions> options = parse_failover(call);
  if (!options) return;
  GroupPort* const group = call.engine.server().group();
  // Earlier commands of the batch must be in the journal before it is given away.
  if (!call.nested) call.execution.release();
  if (options->abort) {
    if (group == nullptr || !group->abort_hand_over().ok()) {
      return call.reply.error("ERR No failover in progress.");
    }
    return call.reply.ok();
  }
  GroupView alone;
  alone.role = GroupRole::kPrimary;
  const GroupView view = group == nullptr ? alone : *group->view();
  if (const Bytes refusal = failover_refusal(view, *options); !refusal.empty()) {
    return call.reply.error(refusal);
  }
  const GroupMember* const target = options->host.empty() ? nullptr : find_target(view, *options);
  const std::string to = target == nullptr ? "" : target->name;
  // FORCE has nothing to force: what is durable is enough for every standby.
  const Status status = group->hand_over(to, options->timeout_ms, {});
  if (status.code() == StatusCode::kStale && !call.nested) {
    return wait_for_standby(call, to, options->timeout_ms);
  }
  reply_status(call.reply, status);
}

}  // namespace sluice
