// LuaMachine's bridge from redis.call to the handlers of commands, and what it refuses there.
#include <cmath>
#include <cstdio>

#include "engine/access/acl.h"
#include "engine/execution/engine.h"
#include "engine/execution/execution.h"
#include "engine/execution/refusal.h"
#include "engine/script/lua_headers.h"
#include "engine/script/lua_machine.h"
#include "engine/script/lua_result.h"

namespace sluice {

namespace {

constexpr Bytes kShardInUse =
    "ERR Script attempted to access a key that it has not declared, and that others use; declare "
    "it "
    "in KEYS, or add the flag allow-cross-slot-keys to the script's first line";

// Like printf's %.17g. Nearly all numbers are whole and do not need printf.
size_t format_number(char (&to)[32], double number) {
  constexpr double kExact = 1e15;
  if (number > -kExact && number < kExact && number == std::trunc(number) &&
      !(number == 0 && std::signbit(number))) {
    return format_i64(to, static_cast<int64_t>(number));
  }
  return static_cast<size_t>(std::snprintf(to, sizeof(to), "%.17g", number));
}

const Command* look_up(std::span<const Bytes> args) {
  const Command* command = CommandTable::instance().find(args[0]);
  if (command == nullptr || (command->flags & kContainer) == 0 || args.size() < 2) return command;
  return CommandTable::find_subcommand(*command, args[1]);
}

}  // namespace

Bytes LuaMachine::collect_arguments(lua_State* lua) {
  const int count = lua_gettop(lua);
  if (count == 0) return "Please specify at least one argument for this redis lib call";
  args_.resize(static_cast<size_t>(count));
  size_t total = 0;
  for (int i = 1; i <= count; ++i) {
    Bytes& argument = args_[static_cast<size_t>(i - 1)];
    const int type = lua_type(lua, i);
    if (type == LUA_TSTRING) {
      size_t size = 0;
      const char* text = lua_tolstring(lua, i, &size);
      argument = {text, size};
      total += size;
    } else if (type == LUA_TNUMBER) {
      // Resized once for all arguments, so that earlier texts do not move.
      if (numbers_.size() < args_.size()) numbers_.resize(args_.size());
      char(&text)[32] = numbers_[static_cast<size_t>(i - 1)].text;
      argument = {text, format_number(text, lua_tonumber(lua, i))};
    } else {
      return "Lua redis lib command arguments must be strings or integers";
    }
  }
  // The same text may be passed many times, and what a command copies from it does not count as the
  // script's memory.
  if (total > memory_.limit_bytes()) memory_.raise_error(lua);
  return {};
}

Status LuaMachine::refuse_rights(const Command& command) {
  switch (check_rights(engine_, call_->client, AclLogContext::kLua, command, args_)) {
    case Denial::kNone:
      return {};
    case Denial::kKey:
      return refusal(
          "ERR The user executing the script can't access at least one of the keys mentioned in "
          "the command arguments");
    case Denial::kChannel:
      return refusal(
          "ERR The user executing the script can't publish to the channel mentioned in the "
          "command");
    case Denial::kCommand:
      break;
  }
  return refusal("ERR The user executing the script can't run this command or subcommand");
}

Status LuaMachine::refuse(const Command* command) {
  if (command == nullptr) return refusal("ERR Unknown Redis command called from script");
  if (!command->takes(args_.size())) {
    return refusal("ERR Wrong number of args calling Redis command from script");
  }
  if ((command->flags & kNoScript) != 0) {
    return refusal("ERR This Redis command is not allowed from script");
  }
  Status rights = refuse_rights(*command);
  if (!rights.ok()) return rights;
  const bool writes = command->writes(args_);
  if ((writes || (command->flags & kSeenByOthers) != 0) && read_only_) {
    return refusal("ERR Write commands are not allowed from read-only scripts.");
  }
  if (writes && engine_.following.load(std::memory_order_relaxed)) {
    return refusal(std::string(errors::kReadOnly));
  }
  // Only before the first write: a script cannot be stopped halfway.
  if ((writes || (command->flags & kNeedsRoom) != 0) && !wrote()) {
    const bool may_grow = (flags_ & kScriptAllowOom) != 0;
    Status growth = refuse_growth(engine_, may_grow ? kWrite : command->flags);
    if (!growth.ok()) return growth;
    Status large = refuse_large(engine_, *command, args_);
    if (!large.ok()) return large;
  }
  // Here even a script that has written is stopped: it would end all writing.
  if (writes) {
    uint64_t bytes = call_->unit.changed_bytes();
    for (const Bytes arg : args_) bytes += arg.size();
    Status large = refuse_large_change(engine_, bytes);
    if (!large.ok()) return large;
  }
  Execution& execution = call_->execution;
  if (execution.locked() != kAllShards) {
    KeyRef first_key;
    const ShardMask needed = execution.shards_of(*command, args_, first_key);
    if ((needed & ~execution.locked()) != 0) {
      reaches_further_->store(true, std::memory_order_relaxed);
      if (!execution.lock_further(needed)) return refusal(std::string(kShardInUse));
    }
  }
  return {};
}

int LuaMachine::call_command(lua_State* lua, bool raise_errors) {
  if (call_ == nullptr) {
    return raise_error(lua, "redis.call/pcall can only be called inside a script invocation");
  }
  const Bytes bad_argument = collect_arguments(lua);
  if (!bad_argument.empty()) {
    if (raise_errors) return raise_error(lua, bad_argument);
    push_error(lua, "ERR " + std::string(bad_argument), false);
    return 1;
  }
  const Command* command = look_up(args_);
  // This frame must not hold objects with destructors where an error is raised.
  bool refused = false;
  bool dropped = false;
  memory_.allow(LuaMemory::kUnlimited);
  {
    const Status status = refuse(command);
    if (!status.ok()) {
      refused = true;
      call_->execution.statistics.errors.add(status.message());
      if (command != nullptr) add_one(call_->execution.statistics.of(command->id).rejected);
      push_error(reply_stack_, status.message(), true);
    }
  }
  if (!refused) {
    if (command->writes(args_)) wrote_.store(true, std::memory_order_relaxed);
    reply_.begin(client_.protocol);
    const uint64_t ticks = call_->execution.run_nested(client_, *command, args_, reply_);
    if (pace_.add_command(ticks)) set_hook(1);
    CHECK(reply_.complete());
    refused = reply_.failed();
    dropped = reply_.dropped();
  }
  memory_.allow(memory_.limit_bytes());
  lua_settop(lua, 0);
  if (dropped) memory_.raise_error(lua);
  lua_xmove(reply_stack_, lua, 1);
  if (refused && raise_errors) return lua_error(lua);
  return 1;
}

int LuaMachine::check_command(lua_State* lua) {
  if (call_ == nullptr) {
    return raise_error(lua, "redis.acl_check_cmd can only be called inside a script invocation");
  }
  const Bytes bad_argument = collect_arguments(lua);
  if (!bad_argument.empty()) return raise_error(lua, bad_argument);
  const Command* command = look_up(args_);
  if (command == nullptr) {
    return raise_error(lua, "Invalid command passed to redis.acl_check_cmd()");
  }
  const bool allowed = client_.user == nullptr ||
                       client_.user->unrestricted.load(std::memory_order_relaxed) ||
                       client_.user->rules()->check(*command, args_).denial == Denial::kNone;
  lua_pushboolean(lua, allowed ? 1 : 0);
  return 1;
}

}  // namespace sluice
