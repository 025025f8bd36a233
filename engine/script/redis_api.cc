// The table `redis` of scripts. Each function finds its machine through the state.
#include <algorithm>
#include <span>
#include <string>

#include "engine/execution/engine.h"
#include "engine/script/lua_headers.h"
#include "engine/script/lua_machine.h"
#include "engine/script/lua_result.h"
#include "engine/script/lua_sandbox.h"

namespace sluice {

namespace {

constexpr size_t kMaxLogLine = 1024;
constexpr int kLogDebug = 0;
constexpr int kLogVerbose = 1;
constexpr int kLogNotice = 2;
constexpr int kLogWarning = 3;

int redis_call(lua_State* lua) { return LuaMachine::of(lua).call_command(lua, true); }
int redis_pcall(lua_State* lua) { return LuaMachine::of(lua).call_command(lua, false); }
int redis_acl_check_cmd(lua_State* lua) { return LuaMachine::of(lua).check_command(lua); }

bool has_one_string(lua_State* lua) {
  return lua_gettop(lua) == 1 && lua_type(lua, 1) == LUA_TSTRING;
}

int push_bad_reply_argument(lua_State* lua) {
  push_error(lua, "ERR wrong number or type of arguments", false);
  return 1;
}

int redis_error_reply(lua_State* lua) {
  if (!has_one_string(lua)) return push_bad_reply_argument(lua);
  Bytes message = lua_tostring(lua, 1);
  if (message.substr(0, 1) == "-") message.remove_prefix(1);
  push_error(lua, message, false);
  return 1;
}

int redis_status_reply(lua_State* lua) {
  if (!has_one_string(lua)) return push_bad_reply_argument(lua);
  lua_createtable(lua, 0, 1);
  lua_pushvalue(lua, 1);
  lua_setfield(lua, -2, "ok");
  return 1;
}

int redis_sha1hex(lua_State* lua) {
  if (lua_gettop(lua) != 1) return raise_error(lua, "wrong number of arguments");
  size_t size = 0;
  const char* text = lua_tolstring(lua, 1, &size);
  const auto look = [](void* state) {
    auto* const running = static_cast<lua_State*>(state);
    LuaMachine::of(running).look(running);
  };
  const Sha1Text sha = sha1_hex({text, size}, look, lua);
  lua_pushlstring(lua, sha.data(), sha.size());
  return 1;
}

int redis_log(lua_State* lua) {
  const int count = lua_gettop(lua);
  if (count < 2) return raise_error(lua, "redis.log() requires two arguments or more.");
  if (lua_isnumber(lua, 1) == 0) {
    return raise_error(lua, "First argument must be a number (log level).");
  }
  const auto level = static_cast<int>(lua_tonumber(lua, 1));
  if (level < kLogDebug || level > kLogWarning) return raise_error(lua, "Invalid debug level.");
  std::string line = "script:";
  for (int i = 2; i <= count && line.size() < kMaxLogLine; ++i) {
    // Only values that are texts already: a conversion could run out of memory and leak this
    // string.
    if (lua_type(lua, i) == LUA_TSTRING) {
      size_t size = 0;
      const char* text = lua_tolstring(lua, i, &size);
      line += ' ';
      line.append(text, std::min(size, kMaxLogLine));
    } else if (lua_type(lua, i) == LUA_TNUMBER) {
      char text[32];
      std::snprintf(text, sizeof(text), " %.14g", lua_tonumber(lua, i));
      line += text;
    }
  }
  if (line.size() > kMaxLogLine) {
    line.resize(kMaxLogLine);
    line += "...";
  }
  LuaMachine::of(lua).engine().server().log_script(static_cast<ScriptLogLevel>(level), line);
  return 0;
}

int redis_setresp(lua_State* lua) {
  if (lua_gettop(lua) != 1) return raise_error(lua, "redis.setresp() requires one argument.");
  const auto protocol = static_cast<int>(lua_tonumber(lua, 1));
  if (protocol != 2 && protocol != 3) return raise_error(lua, "RESP version must be 2 or 3.");
  LuaMachine::of(lua).set_protocol(protocol);
  return 0;
}

int redis_set_repl(lua_State* lua) {
  if (lua_gettop(lua) != 1) return raise_error(lua, "redis.set_repl() requires two arguments.");
  // The journal takes effects, whatever a script sets; only the argument is checked.
  if ((static_cast<int>(lua_tonumber(lua, 1)) & ~3) != 0) {
    return raise_error(lua,
                       "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or "
                       "REPL_NONE.");
  }
  return 0;
}

int redis_replicate_commands(lua_State* lua) {
  lua_pushboolean(lua, 1);
  return 1;
}

int redis_breakpoint(lua_State* lua) {
  lua_pushboolean(lua, 0);
  return 1;
}

int redis_debug(lua_State*) { return 0; }

int redis_register_function(lua_State* lua) { return LuaMachine::of(lua).register_function(lua); }

struct Function {
  const char* name;
  lua_CFunction function;
};
constexpr Function kFunctions[] = {
    {"call", redis_call},
    {"pcall", redis_pcall},
    {"error_reply", redis_error_reply},
    {"status_reply", redis_status_reply},
    {"sha1hex", redis_sha1hex},
    {"log", redis_log},
    {"setresp", redis_setresp},
    {"set_repl", redis_set_repl},
    {"acl_check_cmd", redis_acl_check_cmd},
};
// Functions for scripts only, which no longer have an effect.
constexpr Function kScriptFunctions[] = {
    {"replicate_commands", redis_replicate_commands},
    {"breakpoint", redis_breakpoint},
    {"debug", redis_debug},
};
// Functions for the code of a library while it is loaded.
constexpr Function kLoadingFunctions[] = {
    {"register_function", redis_register_function},
    {"log", redis_log},
};

struct Constant {
  const char* name;
  int value;
};
constexpr Constant kConstants[] = {
    {"LOG_DEBUG", kLogDebug},
    {"LOG_VERBOSE", kLogVerbose},
    {"LOG_NOTICE", kLogNotice},
    {"LOG_WARNING", kLogWarning},
    // Scripts check the version of Redis that this server replaces.
    {"REDIS_VERSION_NUM", 0x00'07'00'0F},
};
constexpr Constant kReplicationConstants[] = {
    {"REPL_NONE", 0}, {"REPL_AOF", 1}, {"REPL_SLAVE", 2}, {"REPL_REPLICA", 2}, {"REPL_ALL", 3},
};

// Adds the functions to the table on top of the stack.
void add_functions(lua_State* lua, std::span<const Function> rows) {
  for (const Function& row : rows) {
    lua_pushcfunction(lua, row.function);
    lua_setfield(lua, -2, row.name);
  }
}

void add_constants(lua_State* lua, std::span<const Constant> rows) {
  for (const Constant& row : rows) {
    lua_pushinteger(lua, row.value);
    lua_setfield(lua, -2, row.name);
  }
}

void add_version(lua_State* lua) {
  lua_pushliteral(lua, "7.0.15");
  lua_setfield(lua, -2, "REDIS_VERSION");
}

}  // namespace

void push_redis_table(lua_State* lua, SandboxKind kind) {
  lua_newtable(lua);
  add_functions(lua, kFunctions);
  if (kind == SandboxKind::kScripts) add_functions(lua, kScriptFunctions);
  add_constants(lua, kConstants);
  add_constants(lua, kReplicationConstants);
  add_version(lua);
}

void push_loading_redis_table(lua_State* lua) {
  lua_newtable(lua);
  add_functions(lua, kLoadingFunctions);
  add_constants(lua, kConstants);
  add_version(lua);
}

}  // namespace sluice
