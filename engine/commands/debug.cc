// DEBUG: tools for tests of clients. The tools for all data are in debug_data.cc.
#include "engine/commands/debug.h"

#include <cstdio>

#include "engine/commands/keys.h"
#include "engine/commands/server.h"
#include "engine/execution/call.h"
#include "engine/execution/engine.h"
#include "engine/execution/execution.h"
#include "engine/rdb/value.h"

namespace sluice {

namespace {

bool may_debug(const Call& call) {
  switch (call.engine.options().debug_access.load(std::memory_order_relaxed)) {
    case DebugAccess::kEverybody:
      return true;
    case DebugAccess::kLocal: {
      const Bytes address = call.client.address;
      return call.client.unix_socket || address.starts_with("127.") || address.starts_with("[::1]");
    }
    case DebugAccess::kNobody:
      break;
  }
  return false;
}

void sleep(Call& call) {
  double seconds = 0;
  if (!call.real(2, seconds)) return;
  if (seconds > 0) call.engine.server().sleep_ms(static_cast<int64_t>(seconds * 1000));
  call.reply.ok();
}

// The only DEBUG tool with a key. DEBUG's row names no keys, so the shard is locked here.
void describe_object(Call& call) {
  const KeyRef key = call.key(2);
  if (call.engine.replaying.load() || !call.execution.lock_further(1U << key.shard)) {
    return call.reply.error("ERR the key cannot be read now");
  }
  const Entry* entry = call.find(key);
  if (entry == nullptr) return call.reply.error(errors::kNoSuchKey);
  // The parts of a DUMP payload around the value: the type in the first byte, version and checksum
  // in the last ten.
  constexpr size_t kFrameBytes = 11;
  const size_t bytes =
      rdb::can_write(entry->type()) ? rdb::write_payload(*entry).size() - kFrameBytes : 0;
  const int64_t idle_s = entry->idle_s(Entry::access_second(call.unit.times.steady_ms));
  char text[200];
  std::snprintf(text, sizeof(text),
                "Value at:%p refcount:%lld encoding:%.*s serializedlength:%zu lru:%lld "
                "lru_seconds_idle:%lld",
                static_cast<const void*>(entry), static_cast<long long>(reference_count(*entry)),
                static_cast<int>(encoding_name(*entry).size()), encoding_name(*entry).data(), bytes,
                static_cast<long long>((call.now_ms() / 1000 - idle_s) & ((1 << 24) - 1)),
                static_cast<long long>(idle_s));
  call.reply.simple(text);
}

void show_map(Call& call) {
  call.reply.map(3);
  for (int64_t i = 0; i < 3; ++i) {
    call.reply.integer(i);
    call.reply.boolean(i == 1);
  }
}

// RESP3 writes the attribute before the reply. DEBUG never runs in a script, which has another
// sink.
void show_attribute(Call& call) {
  if (call.reply.protocol() == 3) {
    static_cast<RespReply&>(call.reply).out().append("|1\r\n");
    call.reply.bulk("key-popularity");
    call.reply.array(2);
    call.reply.bulk("key:123");
    call.reply.integer(90);
  }
  call.reply.bulk("Some real reply following the attribute");
}

void show_push(Call& call) {
  if (call.reply.protocol() == 2) {
    return call.reply.error("ERR RESP2 is not supported by this command");
  }
  call.reply.push(2);
  call.reply.bulk("server-cpu-usage");
  call.reply.integer(42);
  call.reply.bulk("Some real reply following the push reply");
}

struct Shown {
  const char* name;
  void (*show)(Call& call);
};

constexpr Shown kShown[] = {
    {"string", [](Call& call) { call.reply.bulk("Hello World"); }},
    {"integer", [](Call& call) { call.reply.integer(12345); }},
    {"double", [](Call& call) { call.reply.number(3.141); }},
    {"bignum", [](Call& call) { call.reply.big_number("1234567999999999999999999999999999999"); }},
    {"null", [](Call& call) { call.reply.null(); }},
    {"array",
     [](Call& call) {
       call.reply.array(3);
       for (int64_t i = 0; i < 3; ++i) call.reply.integer(i);
     }},
    {"set",
     [](Call& call) {
       call.reply.set(3);
       for (int64_t i = 0; i < 3; ++i) call.reply.integer(i);
     }},
    {"map", show_map},
    {"attrib", show_attribute},
    {"push", show_push},
    {"verbatim", [](Call& call) { call.reply.verbatim("txt", "This is a verbatim\nstring"); }},
    {"true", [](Call& call) { call.reply.boolean(true); }},
    {"false", [](Call& call) { call.reply.boolean(false); }},
};

void show_protocol(Call& call) {
  std::string names;
  for (const Shown& shown : kShown) {
    if (call.option(2, shown.name)) return shown.show(call);
    names += (names.empty() ? "" : "|") + std::string(shown.name);
  }
  call.reply.error("ERR Wrong protocol type name. Please use one of the following: " + names);
}

struct Tool {
  const char* name;
  size_t least;  // arguments after the name
  size_t most;
  void (*run)(Call& call);
  const char* help;
};

constexpr size_t kAnyNumber = SIZE_MAX - 2;

void nothing(Call& call) { call.reply.ok(); }
void help(Call& call);

// Most switches have no effect here. They are accepted because test programs send them.
constexpr Tool kTools[] = {
    {"SLEEP", 1, 1, sleep, "SLEEP <seconds>"},
    {"OBJECT", 1, 1, describe_object, "OBJECT <key>"},
    {"POPULATE", 1, 3, debug_populate, "POPULATE <count> [<prefix>] [<size>]"},
    {"RELOAD", 0, kAnyNumber, debug_reload, "RELOAD [MERGE] [NOFLUSH]"},
    {"LOADAOF", 0, 0, debug_reload, "LOADAOF"},
    {"DIGEST", 0, 0, debug_digest, "DIGEST"},
    {"DIGEST-STATE", 0, 0, debug_digest, "DIGEST-STATE"},
    {"DIGEST-VALUE", 0, kAnyNumber, debug_digest_values, "DIGEST-VALUE <key> [<key> ...]"},
    {"PROTOCOL", 1, 1, show_protocol, "PROTOCOL <type>"},
    {"LOG", 1, 1,
     [](Call& call) {
       call.engine.server().log_warning("DEBUG LOG: " + std::string(call.args[2]));
       call.reply.ok();
     },
     "LOG <message>"},
    {"ERROR", 1, 1, [](Call& call) { call.reply.error(call.args[2]); }, "ERROR <string>"},
    {"SET-ACTIVE-EXPIRE", 1, 1, nothing, "SET-ACTIVE-EXPIRE <0|1> (no effect)"},
    {"QUICKLIST-PACKED-THRESHOLD", 1, 1, nothing, "QUICKLIST-PACKED-THRESHOLD <size> (no effect)"},
    {"CHANGE-REPL-ID", 0, 0, nothing, "CHANGE-REPL-ID (no effect)"},
    {"JMAP", 0, 0, nothing, "JMAP (no effect)"},
    {"HELP", 0, 0, help, "HELP"},
};

void help(Call& call) {
  call.reply.array(1 + std::size(kTools));
  call.reply.simple("DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
  for (const Tool& tool : kTools) call.reply.simple(tool.help);
}

}  // namespace

void debug_command(Call& call) {
  if (!may_debug(call)) {
    return call.reply.error(
        "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", "
        "you can run it from a local connection, otherwise you need to set this option in the "
        "configuration file, and then restart the server.");
  }
  const size_t arguments = call.args.size() - 2;
  for (const Tool& tool : kTools) {
    if (call.option(1, tool.name) && arguments >= tool.least && arguments <= tool.most) {
      return tool.run(call);
    }
  }
  call.reply.error("ERR unknown subcommand or wrong number of arguments for '" +
                   std::string(call.args[1].substr(0, 128)) + "'. Try DEBUG HELP.");
}

}  // namespace sluice
