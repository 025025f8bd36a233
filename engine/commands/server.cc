// The server's own commands: configuration, checkpoints, the slow log, the end.
#include "engine/commands/server.h"

#include "engine/base/numbers.h"
#include "engine/commands/call.h"
#include "engine/commands/help.h"
#include "engine/engine.h"
#include "engine/execution.h"
#include "engine/slow_log.h"

namespace sluice {

void time_command(Call& call) {
  const int64_t now_us = call.engine.server().unix_time_us();
  call.reply.array(2);
  call.reply.bulk_integer(now_us / 1000000);
  call.reply.bulk_integer(now_us % 1000000);
}

namespace {

bool may_debug(const Call& call) {
  switch (call.engine.options().debug_access.load(std::memory_order_relaxed)) {
    case DebugAccess::kEverybody:
      return true;
    case DebugAccess::kLocal: {
      const Bytes address = call.client.address;  // a Unix socket's begins with its path
      return address.starts_with("127.") || address.starts_with("[::1]") ||
             address.starts_with("/");
    }
    case DebugAccess::kNobody:
      break;
  }
  return false;
}

}  // namespace

void debug_command(Call& call) {
  if (!may_debug(call)) {
    return call.reply.error(
        "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", "
        "you can run it from a local connection, otherwise you need to set this option in the "
        "configuration file, and then restart the server.");
  }
  if (call.option(1, "SLEEP") && call.args.size() == 3) {
    double seconds = 0;
    if (!call.real(2, seconds)) return;
    if (seconds > 0) call.engine.server().sleep_ms(static_cast<int64_t>(seconds * 1000));
    return call.reply.ok();
  }
  // Nothing to switch here: expiry by timer cannot be turned off, the rest has no counterpart.
  static constexpr Bytes kAccepted[] = {"SET-ACTIVE-EXPIRE", "JMAP", "QUICKLIST-PACKED-THRESHOLD"};
  for (const Bytes word : kAccepted) {
    if (call.option(1, word)) return call.reply.ok();
  }
  call.reply.error("ERR unknown subcommand or wrong number of arguments for '" +
                   std::string(call.args[1].substr(0, 128)) + "'. Try DEBUG HELP.");
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
  const std::string error = call.engine.server().shutdown(mode, now, force, abort);
  if (!error.empty()) return call.reply.error(error);
  // As in Redis: the connection closes without a reply.
  call.client.close_after_reply = true;
}

void save_command(Call& call) {
  call.execution.release();  // the checkpoint's walk needs every shard
  const std::string error = call.engine.server().checkpoint(true);
  error.empty() ? call.reply.ok() : call.reply.error(error);
}

void bgsave_command(Call& call) {
  if (call.args.size() > 2 || (call.args.size() == 2 && !call.option(1, "SCHEDULE"))) {
    return call.reply.error(errors::kSyntax);
  }
  const std::string error = call.engine.server().checkpoint(false);
  error.empty() ? call.reply.simple("Background saving started") : call.reply.error(error);
}

void lastsave_command(Call& call) { call.reply.integer(call.engine.server().last_checkpoint_s()); }

void monitor_command(Call& call) {
  if (call.nested) return call.reply.error("ERR MONITOR isn't allowed for DENY BLOCKING client");
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

void config_set_command(Call& call) {
  if (call.args.size() % 2 != 0) {
    return call.reply.error("ERR wrong number of arguments for 'config|set' command");
  }
  std::vector<std::pair<std::string, std::string>> parameters;
  for (size_t at = 2; at < call.args.size(); at += 2) {
    parameters.emplace_back(call.args[at], call.args[at + 1]);
  }
  const std::string error = call.engine.server().config_set(parameters);
  error.empty() ? call.reply.ok() : call.reply.error(error);
}

void config_rewrite_command(Call& call) {
  const std::string error = call.engine.server().config_rewrite();
  error.empty() ? call.reply.ok() : call.reply.error(error);
}

void config_resetstat_command(Call& call) {
  call.engine.reset_stats();
  call.engine.server().reset_stats();
  call.reply.ok();
}

void config_help_command(Call& call) { reply_help(call); }

// --- SLOWLOG ---

void slowlog_get_command(Call& call) {
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

void slowlog_help_command(Call& call) { reply_help(call); }

// --- MEMORY ---

void memory_usage_command(Call& call) {
  int64_t samples = 5;
  for (size_t at = 3; at < call.args.size(); at += 2) {
    if (!call.option(at, "SAMPLES") || at + 1 >= call.args.size()) {
      return call.reply.error(errors::kSyntax);
    }
    if (!call.integer(at + 1, samples)) return;
    if (samples < 0) return call.reply.error(errors::kSyntax);
  }
  const Entry* entry = call.find(call.key(2));
  if (entry == nullptr) return call.reply.null();
  // The slot in the keyspace's map, and the place in the order of expiry.
  constexpr size_t kSlotBytes = 16;
  constexpr size_t kExpiryBytes = 24;
  const size_t bytes = kSlotBytes + (entry->expire_ms() != 0 ? kExpiryBytes : 0) +
                       entry->memory_bytes() +
                       collection_memory_bytes(*entry, static_cast<size_t>(samples));
  call.reply.integer(static_cast<int64_t>(bytes));
}

void memory_help_command(Call& call) { reply_help(call); }

}  // namespace sluice
