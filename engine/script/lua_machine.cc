#include "engine/script/lua_machine.h"

#include <algorithm>

#include "engine/execution/engine.h"
#include "engine/execution/execution.h"
#include "engine/script/lua_headers.h"
#include "engine/script/lua_result.h"
#include "engine/script/lua_source.h"
#include "engine/script/script_engine.h"

namespace sluice {

namespace {

// A busy script lets others be served this often.
constexpr int64_t kPollUs = 1000;
// The clock is checked after the instruction that has requested this much memory.
constexpr uint64_t kGivenPerLook = 4U << 20;
// One instruction may read or copy the largest block (a concatenation, a comparison). So larger
// blocks mean fewer instructions between two checks.
constexpr uint64_t kTouchedPerLook = 64U << 20;
// As long as Redis lets the code of a library run.
constexpr int64_t kLoadTimeoutUs = 500'000;

// What a run may leave for Lua's own steps to collect.
constexpr uint64_t kCollectAboveBytes = 32U << 20;

constexpr Bytes kKilled = "Script killed by user with SCRIPT KILL...";

void reply_killed(Call& call, Bytes name) {
  call.reply.error("ERR " + std::string(kKilled) + " script: " + std::string(name));
}

void reply_memory_error(Call& call, Bytes name) {
  call.reply.error("ERR The script needs more memory than script-memory-limit allows script: " +
                   std::string(name));
}

// The compiled code of a function in the registry.
std::string dump(lua_State* lua, int function) {
  std::string code;
  const auto append = [](lua_State*, const void* bytes, size_t size, void* to) {
    static_cast<std::string*>(to)->append(static_cast<const char*>(bytes), size);
    return 0;
  };
  lua_rawgeti(lua, LUA_REGISTRYINDEX, function);
  if (lua_dump(lua, append, &code) != 0) code.clear();
  lua_pop(lua, 1);
  return code;
}

}  // namespace

LuaMachine::LuaMachine(Engine& engine, ScriptEngine& scripts, SandboxKind kind)
    : engine_(engine), scripts_(scripts), kind_(kind) {
  open_state();
  // MONITOR shows commands of scripts with this address.
  client_.address = "lua";
  client_.in_script = true;
}

void LuaMachine::open_state() {
  lua_ = lua_newstate(&LuaMachine::allocate, this);
  CHECK(lua_ != nullptr);
  luaJIT_setmode(lua_, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
  build_sandbox(lua_, kind_);
  CHECK(lua_gettop(lua_) == kGlobalsSlot);
  lua_pushcfunction(lua_, describe_error);
  lua_pushliteral(lua_, "KEYS");
  lua_pushliteral(lua_, "ARGV");
  push_loading_globals(lua_);
  CHECK(lua_gettop(lua_) == kLastSlot);
  reply_stack_ = lua_newthread(lua_);
  luaL_ref(lua_, LUA_REGISTRYINDEX);
  luaL_checkstack(reply_stack_, LuaReply::kStackSlots, nullptr);
  reply_.attach(*this, reply_stack_);
  hook_instructions_ = 0;  // the new state has no hook
  set_hook(static_cast<int>(pace_.instructions()));
}

LuaMachine::~LuaMachine() { lua_close(lua_); }

LuaMachine& LuaMachine::of(lua_State* lua) {
  void* self = nullptr;
  lua_getallocf(lua, &self);
  return *static_cast<LuaMachine*>(self);
}

// --- Scripts ---

Result<const CompiledScript*> LuaMachine::compile(const KeptScript& kept, ScriptOrigin origin) {
  const Script& script = *kept.script;
  const bool from_code = kept.code != nullptr;
  const Bytes source = from_code ? Bytes(*kept.code) : script.code();
  const uint64_t before = memory_.bytes();
  // The memory does not count as that of a script that runs meanwhile.
  const uint64_t allowed = memory_.allow(LuaMemory::kUnlimited);
  const bool known = script.compiles.load(std::memory_order_relaxed);
  const int status = from_code
                         ? luaL_loadbufferx(lua_, source.data(), source.size(), "@user_script", "b")
                         : load_source(lua_, source, "@user_script", SourceDialect::kLua51, !known);
  memory_.allow(allowed);
  if (status != 0) {
    const char* message = lua_tostring(lua_, -1);
    std::string error = "ERR Error compiling script (new function): ";
    error += message == nullptr ? "no message" : message;
    lua_pop(lua_, 1);
    return refusal(std::move(error));
  }
  script.compiles.store(true, std::memory_order_relaxed);
  const int function = luaL_ref(lua_, LUA_REGISTRYINDEX);
  // A step of the collector may have freed more than this allocated.
  const uint64_t after = memory_.bytes();
  const uint64_t bytes = std::max<uint64_t>(after > before ? after - before : 0, source.size());
  const CompiledScript* const compiled =
      compiled_.add(kept.script, origin, from_code, function, bytes);
  // While a running script serves sockets, another request may need the shards of a script. The
  // running script is not evicted.
  if (call_ == nullptr) {
    const uint64_t limit =
        engine_.options().script_memory_limit_bytes.load(std::memory_order_relaxed);
    give_up_scripts(limit / kCompiledPart);
  }
  return compiled;
}

void LuaMachine::give_up_scripts(uint64_t bytes) {
  while (compiled_.bytes() > bytes && compiled_.size() > 1) {
    const CompiledScript gone = compiled_.give_up();
    if (gone.origin == ScriptOrigin::kKept && !gone.from_code) {
      scripts_.keep_code(*gone.script, dump(lua_, gone.function));
    }
    luaL_unref(lua_, LUA_REGISTRYINDEX, gone.function);
  }
}

void LuaMachine::follow_flush(uint64_t generation) {
  // While a running script serves sockets, another request may need the shards of a script.
  if (generation_ == generation || call_ != nullptr) return;
  generation_ = generation;
  compiled_.clear();
  // As in Redis, settings that scripts have changed (those of cjson) are reset as well.
  lua_close(lua_);
  open_state();
  memory_.begin_state();
}

// --- Running ---

void LuaMachine::set_array(int name_slot, std::span<const Bytes> values) {
  lua_pushvalue(lua_, name_slot);
  push_list(lua_, values);
  lua_rawset(lua_, kGlobalsSlot);
}

void LuaMachine::run(Call& call, const CompiledScript& compiled, size_t key_count, bool read_only) {
  const Script& script = *compiled.script;
  begin_run(call, script.flags, script.reaches_further, read_only);
  set_array(kKeysSlot, call.args.subspan(3, key_count));
  set_array(kArgumentsSlot, call.args.subspan(3 + key_count));
  lua_rawgeti(lua_, LUA_REGISTRYINDEX, compiled.function);
  finish_run(lua_call_protected(0), view(script.sha));
}

void LuaMachine::begin_run(Call& call, uint32_t flags, std::atomic<bool>& reaches_further,
                           bool read_only) {
  call_ = &call;
  client_.script_call = &call;
  reaches_further_ = &reaches_further;
  flags_ = flags;
  read_only_ = read_only || (flags & kScriptNoWrites) != 0;
  begin_us_ = 0;
  depth = 0;
  pace_.begin();
  set_hook(static_cast<int>(pace_.instructions()));
  // A script leaves nothing that the next one could reach; functions may, in their upvalues.
  if (kind_ == SandboxKind::kScripts) largest_bytes_ = 0;
  wrote_.store(false, std::memory_order_relaxed);
  reply_.count_errors_in(call.execution.statistics.errors);
  client_.id = call.client.id;
  client_.no_touch = call.client.no_touch;
  client_.database = call.client.database;
  client_.protocol = 2;
  if (client_.user.get() != call.client.user.get()) client_.user = call.client.user;
  memory_.set_limit_bytes(
      engine_.options().script_memory_limit_bytes.load(std::memory_order_relaxed));
}

int LuaMachine::lua_call_protected(int arguments) {
  memory_.allow(memory_.limit_bytes());
  const int status = lua_pcall(lua_, arguments, 1, kHandlerSlot);
  memory_.allow(LuaMemory::kUnlimited);
  return status;
}

void LuaMachine::finish_run(int status, Bytes name) {
  if (status == 0) {
    if (!reply_result()) killed() ? reply_killed(*call_, name) : reply_memory_error(*call_, name);
  } else if (status == LUA_ERRMEM) {
    reply_memory_error(*call_, name);
  } else {
    const std::string text = error_text(lua_, name);
    if (!memory_.make_room(lua_, text.size())) {
      reply_memory_error(*call_, name);
    } else {
      is_counted_error(lua_) ? call_->reply.repeat_error(text) : call_->reply.error(text);
    }
  }
  lua_settop(lua_, kLastSlot);
  clean_up();
}

bool LuaMachine::reply_result() {
  const auto room = [&] {
    const uint64_t limit = memory_.limit_bytes();
    return limit - std::min(memory_.bytes(), limit);
  };
  if (reply_value(lua_, call_->reply, client_.protocol, room())) return true;
  if (killed()) return false;
  // It may fit once garbage is collected.
  return memory_.collect_for(lua_, 0) && reply_value(lua_, call_->reply, client_.protocol, room());
}

void LuaMachine::clean_up() {
  call_ = nullptr;
  client_.script_call = nullptr;
  reaches_further_ = nullptr;
  if (busy_.load(std::memory_order_relaxed)) {
    busy_.store(false, std::memory_order_release);
    scripts_.leave_busy(*this);
  }
  killed_.store(false, std::memory_order_relaxed);
  memory_.trim_buffer(lua_);
  collect_after_run();
}

void LuaMachine::collect_after_run() {
  // Lua's own steps let the state grow to twice what it holds. Anything above that was left by this
  // run, and a complete collection costs about as much as that run did.
  const uint64_t limit = memory_.limit_bytes();
  give_up_scripts(limit / kCompiledPart);  // the limit may have been lowered
  const uint64_t held = std::min(std::max(memory_.collected_bytes(), compiled_.bytes()), limit / 2);
  const uint64_t much = std::min(2 * held + kCollectAboveBytes, (held + limit) / 2);
  const uint64_t least = held + limit / 16;
  if (memory_.bytes() <= std::max(much, least)) return;
  memory_.collect(lua_);
  if (kind_ == SandboxKind::kFunctions || memory_.bytes() <= limit / 4) return;
  // The compiled scripts take more than was counted.
  give_up_scripts(0);
  memory_.collect(lua_);
}

// --- Time ---

inline void LuaMachine::note_allocation(uint64_t old_size, uint64_t new_size) {
  if (new_size <= old_size) return;
  largest_bytes_ = std::max(largest_bytes_, new_size);
  // Refused allocations count as well: they may follow a long copy, and may be repeated.
  given_bytes_ += new_size - old_size;
  if (given_bytes_ < kGivenPerLook) return;
  if (call_ != nullptr || registration_ != nullptr) set_hook(1);
}

void* LuaMachine::allocate(void* self, void* block, size_t old_size, size_t new_size) {
  auto& machine = *static_cast<LuaMachine*>(self);
  machine.note_allocation(old_size, new_size);
  return machine.memory_.allocate(block, old_size, new_size);
}

void LuaMachine::set_hook(int instructions) {
  if (instructions == hook_instructions_) return;
  hook_instructions_ = instructions;
  lua_sethook(lua_, &LuaMachine::count_hook, LUA_MASKCOUNT, instructions);
}

void LuaMachine::count_hook(lua_State* lua, lua_Debug*) {
  LuaMachine& machine = of(lua);
  machine.pace_.begin_look();
  machine.look(lua);
  machine.pace_.end_look();
  machine.given_bytes_ = 0;
  // Lua's own steps come too late if a script makes a few large texts.
  machine.memory_.make_room(lua, machine.memory_.limit_bytes() / 8);
  const uint64_t largest = std::min(machine.largest_bytes_, machine.memory_.bytes());
  machine.set_hook(static_cast<int>(std::clamp<uint64_t>(
      kTouchedPerLook / std::max<uint64_t>(largest, 1), 1, machine.pace_.instructions())));
}

void LuaMachine::look(lua_State* lua) {
  if (registration_ != nullptr) {
    const int64_t now_us = engine_.server().steady_time_us();
    if (begin_us_ == 0) begin_us_ = now_us;
    if (now_us - begin_us_ >= kLoadTimeoutUs) raise_error(lua, "FUNCTION LOAD timeout");
    return;
  }
  if (keep_serving()) return;
  // From now on the hook fires at every instruction, so that no pcall inside the script survives
  // it.
  set_hook(1);
  raise_error(lua, kKilled);
}

bool LuaMachine::keep_serving() {
  const int64_t threshold_ms =
      engine_.options().busy_reply_threshold_ms.load(std::memory_order_relaxed);
  if (call_ == nullptr) return true;
  if (threshold_ms <= 0) {
    scripts_.looks().fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  const int64_t now_us = engine_.server().steady_time_us();
  if (!busy_.load(std::memory_order_relaxed)) {
    // Nearly all scripts end before the first check and never read the clock.
    if (begin_us_ == 0) begin_us_ = now_us;
    if (now_us - begin_us_ < threshold_ms * 1000) {
      scripts_.looks().fetch_add(1, std::memory_order_relaxed);
      return true;
    }
    busy_.store(true, std::memory_order_release);
    scripts_.enter_busy(*this, *call_, begin_us_);
    engine_.server().log_warning("A script has been running for " +
                                 std::to_string((now_us - begin_us_) / 1000) +
                                 " ms; SCRIPT KILL or FUNCTION KILL can stop it");
    polled_us_ = 0;
  }
  if (now_us - polled_us_ >= kPollUs) {
    polled_us_ = now_us;
    engine_.server().poll_events();
  }
  return !killed();
}

}  // namespace sluice
