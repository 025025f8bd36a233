#include "engine/script/lua_machine.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "engine/execution/engine.h"
#include "engine/execution/execution.h"
#include "engine/script/lua_headers.h"
#include "engine/script/lua_sandbox.h"
#include "engine/script/lua_source.h"
#include "engine/script/lua_value.h"
#include "engine/script/script_engine.h"

namespace sluice {

namespace {

// Frequent enough for a clock of milliseconds, rare enough to cost nothing.
constexpr int kInstructionsPerLook = 100'000;
// The clock is checked after the instruction that has requested this much memory.
constexpr uint64_t kGivenPerLook = 4U << 20;
// One instruction may read or copy the largest block (a concatenation, a comparison). So larger
// blocks mean fewer instructions between two checks.
constexpr uint64_t kTouchedPerLook = 64U << 20;
// As long as Redis lets the code of a library run.
constexpr int64_t kLoadTimeoutUs = 500'000;

constexpr Bytes kKilled = "Script killed by user with SCRIPT KILL...";

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
  set_hook(kInstructionsPerLook);
}

LuaMachine::~LuaMachine() {
  lua_close(lua_);
  std::free(buffer_.data);
}

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
  const uint64_t before = memory_bytes();
  // The memory does not count as that of a script that runs meanwhile.
  const uint64_t allowed = std::exchange(allowed_bytes_, kUnlimited);
  const bool known = script.compiles.load(std::memory_order_relaxed);
  const int status = from_code
                         ? luaL_loadbufferx(lua_, source.data(), source.size(), "@user_script", "b")
                         : load_source(lua_, source, "@user_script", SourceDialect::kLua51, !known);
  allowed_bytes_ = allowed;
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
  const uint64_t after = memory_bytes();
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
      scripts_.keep_code(*gone.script, dump(gone.function));
    }
    luaL_unref(lua_, LUA_REGISTRYINDEX, gone.function);
  }
}

std::string LuaMachine::dump(int function) {
  std::string code;
  const auto append = [](lua_State*, const void* bytes, size_t size, void* to) {
    static_cast<std::string*>(to)->append(static_cast<const char*>(bytes), size);
    return 0;
  };
  lua_rawgeti(lua_, LUA_REGISTRYINDEX, function);
  if (lua_dump(lua_, append, &code) != 0) code.clear();
  lua_pop(lua_, 1);
  return code;
}

void LuaMachine::follow_flush(uint64_t generation) {
  // While a running script serves sockets, another request may need the shards of a script.
  if (generation_ == generation || call_ != nullptr) return;
  generation_ = generation;
  compiled_.clear();
  // As in Redis, settings that scripts have changed (those of cjson) are reset as well.
  lua_close(lua_);
  open_state();
  collected_bytes_ = memory_bytes();
}

// --- Running ---

void LuaMachine::set_array(int name_slot, std::span<const Bytes> values) {
  lua_pushvalue(lua_, name_slot);
  push_list(values);
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
  // A script leaves nothing that the next one could reach; functions may, in their upvalues.
  if (kind_ == SandboxKind::kScripts) largest_bytes_ = 0;
  wrote_.store(false, std::memory_order_relaxed);
  reply_.count_errors_in(call.execution.error_counts());
  client_.id = call.client.id;
  client_.no_touch = call.client.no_touch;
  client_.database = call.client.database;
  client_.protocol = 2;
  if (client_.user.get() != call.client.user.get()) client_.user = call.client.user;
  limit_bytes_ = engine_.options().script_memory_limit_bytes.load(std::memory_order_relaxed);
}

int LuaMachine::lua_call_protected(int arguments) {
  allowed_bytes_ = limit_bytes_;
  const int status = lua_pcall(lua_, arguments, 1, kHandlerSlot);
  allowed_bytes_ = kUnlimited;
  return status;
}

void LuaMachine::finish_run(int status, Bytes name) {
  if (status == 0) {
    if (!reply_result()) killed() ? reply_killed(name) : reply_memory_error(name);
  } else if (status == LUA_ERRMEM) {
    reply_memory_error(name);
  } else {
    const std::string text = error_text(lua_, name);
    if (!make_room(lua_, text.size())) {
      reply_memory_error(name);
    } else {
      is_counted_error(lua_) ? call_->reply.repeat_error(text) : call_->reply.error(text);
    }
  }
  lua_settop(lua_, kLastSlot);
  clean_up();
}

bool LuaMachine::reply_result() {
  const auto room = [&] { return limit_bytes_ - std::min(memory_bytes(), limit_bytes_); };
  if (reply_value(lua_, call_->reply, client_.protocol, room())) return true;
  if (killed()) return false;
  // It may fit once garbage is collected.
  return collect_for(lua_, 0) && reply_value(lua_, call_->reply, client_.protocol, room());
}

void LuaMachine::reply_killed(Bytes name) {
  call_->reply.error("ERR " + std::string(kKilled) + " script: " + std::string(name));
}

void LuaMachine::reply_memory_error(Bytes name) {
  call_->reply.error("ERR The script needs more memory than script-memory-limit allows script: " +
                     std::string(name));
}

void LuaMachine::clean_up() {
  call_ = nullptr;
  client_.script_call = nullptr;
  reaches_further_ = nullptr;
  if (busy_.load(std::memory_order_relaxed)) {
    busy_.store(false, std::memory_order_release);
    scripts_.leave_busy(*this);
  }
  if (killed_.load(std::memory_order_relaxed)) {
    killed_.store(false, std::memory_order_relaxed);
    set_hook(kInstructionsPerLook);
  }
  trim_buffer();
  collect_after_run();
}

// --- Time ---

void LuaMachine::note_allocation(uint64_t old_size, uint64_t new_size) {
  if (new_size <= old_size) return;
  largest_bytes_ = std::max(largest_bytes_, new_size);
  // Refused allocations count as well: they may follow a long copy, and may be repeated.
  given_bytes_ += new_size - old_size;
  if (given_bytes_ < kGivenPerLook || hook_instructions_ == 1) return;
  if (call_ != nullptr || registration_ != nullptr) set_hook(1);
}

void LuaMachine::set_hook(int instructions) {
  hook_instructions_ = instructions;
  lua_sethook(lua_, &LuaMachine::count_hook, LUA_MASKCOUNT, instructions);
}

void LuaMachine::count_hook(lua_State* lua, lua_Debug*) {
  LuaMachine& machine = of(lua);
  machine.look(lua);
  machine.given_bytes_ = 0;
  // Lua's own steps come too late if a script makes a few large texts.
  machine.make_room(lua, machine.limit_bytes_ / 8);
  const uint64_t largest = std::min(machine.largest_bytes_, machine.memory_bytes());
  const int instructions = static_cast<int>(std::clamp<uint64_t>(
      kTouchedPerLook / std::max<uint64_t>(largest, 1), 1, kInstructionsPerLook));
  if (instructions != machine.hook_instructions_) machine.set_hook(instructions);
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
  if (call_ == nullptr || threshold_ms <= 0) return true;
  if (!busy_.load(std::memory_order_relaxed)) {
    const int64_t now_us = engine_.server().steady_time_us();
    // Nearly all scripts end before the first check and never read the clock.
    if (begin_us_ == 0) begin_us_ = now_us;
    if (now_us - begin_us_ < threshold_ms * 1000) return true;
    busy_.store(true, std::memory_order_release);
    scripts_.enter_busy(*this, *call_, begin_us_);
    engine_.server().log_warning("A script has been running for " +
                                 std::to_string((now_us - begin_us_) / 1000) +
                                 " ms; SCRIPT KILL or FUNCTION KILL can stop it");
  }
  engine_.server().poll_events();
  return !killed();
}

}  // namespace sluice
