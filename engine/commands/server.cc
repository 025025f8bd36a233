// The server's own commands: configuration, checkpoints, the slow log, shutdown.
#include "engine/commands/server.h"

#include <algorithm>

#include "engine/clients/slow_log.h"
#include "engine/commands/help.h"
#include "engine/execution/call.h"
#include "engine/execution/engine.h"
#include "engine/execution/execution.h"
#include "engine/ports/persistence_port.h"

namespace sluice {

void time_command(Call& call) {
  const int64_t now_us = call.engine.server().unix_time_us();
  call.reply.array(2);
  call.reply.bulk_integer(now_us / 1000000);
  call.reply.bulk_integer(now_us % 1000000);
}

void shutdown_command(Call& call) {
  ShutdownMode mode = ShutdownMode::kDefault;
  bool now = false;
  bool force = false;
  bool abort = false;
  for (size_t at = 1; at < call.args.size(); ++at) {
    if (call.option(at, "NOSAVE") && mode == ShutdownMode::kDefault) {
      mode = ShutdownMode::kNoSave;
    } else if (call.option(at, "SAVE") && mode == ShutdownMode::kDefault) {
      mode = ShutdownMode::kSave;
    } else if (call.option(at, "NOW")) {
      now = true;
    } else if (call.option(at, "FORCE")) {
      force = true;
    } else if (call.option(at, "ABORT")) {
      abort = true;
    } else {
      return call.reply.error(errors::kSyntax);
    }
  }
  if (abort && (now || force || mode != ShutdownMode::kDefault)) {
    return call.reply.error(errors::kSyntax);
  }
  if (call.client.in_multi) {
    return call.reply.error("ERR Command not allowed inside a transaction");
  }
  const Status status = call.engine.server().shutdown(mode, now, force, abort);
  if (!status.ok()) return call.reply.error(status.message());
  // As in Redis, the connection is closed without a reply.
  call.client.close_after_reply = true;
}

void save_command(Call& call) {
  call.execution.release();  // the checkpoint's walk needs every shard
  call.reply_status(call.engine.server().checkpoint());
}

namespace {

// In a transaction the checkpoint begins afterwards, as in Redis, whether or not one is running.
PersistencePort::Start start_checkpoint(const Call& call, PersistencePort::Kind kind,
                                        bool may_wait) {
  using Start = PersistencePort::Start;
  PersistencePort* const port = call.engine.server().persistence();
  if (port == nullptr) return Start::kNowhere;
  const Start start = port->start_checkpoint(kind, may_wait || call.nested);
  return start == Start::kNow && call.nested ? Start::kBehind : start;
}

constexpr Bytes kNowhere = "ERR nothing can be kept: the server has no directory";

}  // namespace

// A checkpoint serves the purpose of a rewrite: the journal before it is deleted.
void bgrewriteaof_command(Call& call) {
  switch (start_checkpoint(call, PersistencePort::Kind::kRewrite, true)) {
    case PersistencePort::Start::kNow:
      return call.reply.simple("Background append only file rewriting started");
    case PersistencePort::Start::kBehind:
      return call.reply.simple("Background append only file rewriting scheduled");
    case PersistencePort::Start::kNowhere:
      return call.reply.error(kNowhere);
    default:
      return call.reply.error("ERR Background append only file rewriting already in progress");
  }
}

void bgsave_command(Call& call) {
  if (call.args.size() > 2 || (call.args.size() == 2 && !call.option(1, "SCHEDULE"))) {
    return call.reply.error(errors::kSyntax);
  }
  const bool schedule = call.args.size() == 2;
  switch (start_checkpoint(call, PersistencePort::Kind::kSave, schedule)) {
    case PersistencePort::Start::kNow:
      return call.reply.simple("Background saving started");
    case PersistencePort::Start::kBehind:
      return call.reply.simple("Background saving scheduled");
    case PersistencePort::Start::kSameRuns:
      return call.reply.error("ERR Background save already in progress");
    case PersistencePort::Start::kOtherRuns:
      return call.reply.error(
          "ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE "
          "in order to schedule a BGSAVE whenever possible.");
    case PersistencePort::Start::kNowhere:
      return call.reply.error(kNowhere);
  }
}

void lastsave_command(Call& call) { call.reply.integer(call.engine.server().last_checkpoint_s()); }

void monitor_command(Call& call) {
  if (call.nested) return call.reply.error("ERR MONITOR isn't allowed for DENY BLOCKING client");
  call.execution.release();  // earlier commands of its batch are not shown to this monitor
  if (!call.client.monitoring) call.engine.monitors().add(call.client.id, call.client.port);
  call.client.monitoring = true;
  call.reply.ok();
}

// --- CONFIG ---

void config_get_command(Call& call) {
  const std::vector<std::string> patterns(call.args.begin() + 2, call.args.end());
  const auto found = call.engine.server().config_get(patterns);
  call.reply.map(found.size());
  for (const auto& [name, value] : found) {
    call.reply.bulk(name);
    call.reply.bulk(value);
  }
}

// CONFIG SET appendonly yes is answered when the journal counts. Returns false if it already does,
// or if the value is no.
static bool replies_when_kept(Call& call) {
  PersistencePort* const port = call.engine.server().persistence();
  if (port == nullptr) return false;
  auto waiter = std::make_shared<Waiter>();
  const auto reply = [waiter](const Status& status) {
    if (!waiter->claim()) return;
    ByteBuffer bytes;
    RespReply answer(bytes, waiter->protocol);
    status.ok() ? answer.ok() : answer.error(status.message());
    waiter->port->deliver_blocked_reply(std::move(bytes), 0);
  };
  call.block({}, waiter);
  if (port->when_kept(reply)) return true;
  call.client.waiter = nullptr;
  return false;
}

void config_set_command(Call& call) {
  if (call.args.size() % 2 != 0) return call.reply.error(errors::kSyntax);
  std::vector<std::pair<std::string, std::string>> parameters;
  for (size_t at = 2; at < call.args.size(); at += 2) {
    parameters.emplace_back(call.args[at], call.args[at + 1]);
  }
  const Status status = call.engine.server().config_set(parameters);
  if (!status.ok()) return call.reply.error(status.message());
  const bool begins_journal =
      std::any_of(parameters.begin(), parameters.end(), [](const auto& pair) {
        return equals_ignore_case(pair.first, "appendonly") &&
               equals_ignore_case(pair.second, "yes");
      });
  if (call.nested || !begins_journal || !replies_when_kept(call)) call.reply.ok();
}

void config_rewrite_command(Call& call) {
  call.reply_status(call.engine.server().config_rewrite());
}

void config_resetstat_command(Call& call) {
  call.engine.reset_stats();
  call.engine.server().reset_stats();
  call.reply.ok();
}

// --- SLOWLOG ---

void slowlog_get_command(Call& call) {
  if (call.args.size() > 3) return reply_subcommand_error(call);
  int64_t count = 10;
  if (call.args.size() == 3) {
    constexpr Bytes kError = "ERR count should be greater than or equal to -1";
    if (!call.integer(2, count, kError)) return;
    if (count < -1) return call.reply.error(kError);
  }
  const auto entries =
      call.engine.slow_log().newest(count < 0 ? SIZE_MAX : static_cast<size_t>(count));
  call.reply.array(entries.size());
  for (const SlowEntry& entry : entries) {
    call.reply.array(6);
    call.reply.integer(static_cast<int64_t>(entry.id));
    call.reply.integer(entry.unix_s);
    call.reply.integer(entry.duration_us);
    call.reply.array(entry.arguments.size());
    for (const std::string& argument : entry.arguments) call.reply.bulk(argument);
    call.reply.bulk(entry.client_address);
    call.reply.bulk(entry.client_name);
  }
}

void slowlog_len_command(Call& call) {
  call.reply.integer(static_cast<int64_t>(call.engine.slow_log().size()));
}

void slowlog_reset_command(Call& call) {
  call.engine.slow_log().reset();
  call.reply.ok();
}

}  // namespace sluice
