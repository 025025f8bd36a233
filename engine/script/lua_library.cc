// LuaMachine's part for functions: the code of libraries, the functions that it registers, and
// FCALL.
#include <algorithm>

#include "engine/execution/engine.h"
#include "engine/script/lua_headers.h"
#include "engine/script/lua_machine.h"
#include "engine/script/lua_result.h"
#include "engine/script/lua_sandbox.h"
#include "engine/script/lua_source.h"

namespace sluice {

namespace {

// The places of the arguments of redis.register_function on the stack, in either form. They are on
// the stack because an error that is raised while they are collected runs no destructors.
enum Slot { kTable = 1, kName = 2, kDescription = 3, kCallback = 4 };

Bytes text_at(lua_State* lua, int index) {
  size_t size = 0;
  const char* const text = lua_tolstring(lua, index, &size);
  return {text, size};
}

// Reads the list on top of the stack.
uint32_t read_flags(lua_State* lua) {
  if (!lua_istable(lua, -1)) {
    raise_error(lua,
                "flags argument to redis.register_function must be a table representing function "
                "flags");
  }
  uint32_t flags = 0;
  for (int i = 1;; ++i) {
    lua_rawgeti(lua, -1, i);
    if (lua_isnil(lua, -1)) break;
    uint32_t flag = 0;
    for (const ScriptFlagName& known : kScriptFlagNames) {
      const bool named =
          lua_type(lua, -1) == LUA_TSTRING && equals_ignore_case(known.name, text_at(lua, -1));
      if (named) flag = known.flag;
    }
    if (flag == 0) raise_error(lua, "unknown flag given");
    flags |= flag;
    lua_pop(lua, 1);
  }
  lua_pop(lua, 1);
  return flags;
}

// Moves the text on top of the stack, or the number as a text, into a slot.
void take_text(lua_State* lua, int slot, const char* error) {
  if (lua_isstring(lua, -1) == 0) raise_error(lua, error);
  lua_pushvalue(lua, -1);
  lua_tolstring(lua, -1, nullptr);
  lua_replace(lua, slot);
}

// Reads one named argument, with its name at -2 and its value on top.
void read_named(lua_State* lua, uint32_t& flags) {
  if (lua_isstring(lua, -2) == 0) {
    raise_error(lua, "named argument key given to redis.register_function is not a string");
  }
  const Bytes name = lua_type(lua, -2) == LUA_TSTRING ? text_at(lua, -2) : Bytes();
  if (equals_ignore_case(name, "function_name")) {
    take_text(lua, kName,
              "function_name argument given to redis.register_function must be a string");
  } else if (equals_ignore_case(name, "description")) {
    take_text(lua, kDescription,
              "description argument given to redis.register_function must be a string");
  } else if (equals_ignore_case(name, "callback")) {
    if (!lua_isfunction(lua, -1)) {
      raise_error(lua, "callback argument given to redis.register_function must be a function");
    }
    lua_pushvalue(lua, -1);
    lua_replace(lua, kCallback);
  } else if (equals_ignore_case(name, "flags")) {
    flags = read_flags(lua);
  } else {
    raise_error(lua, "unknown argument given to redis.register_function");
  }
}

// Moves either form of arguments into the slots. Returns the flags.
uint32_t read_arguments(lua_State* lua) {
  const int count = lua_gettop(lua);
  if (count < 1 || count > 2) {
    raise_error(lua, "wrong number of arguments to redis.register_function");
  }
  uint32_t flags = 0;
  if (count == 1) {
    if (!lua_istable(lua, kTable)) {
      raise_error(lua,
                  "calling redis.register_function with a single argument is only applicable to "
                  "Lua table (representing named arguments).");
    }
    if (is_protected(lua, kTable)) unprotect(lua, kTable);
    lua_settop(lua, kCallback);
    lua_pushnil(lua);
    while (lua_next(lua, kTable) != 0) {
      read_named(lua, flags);
      lua_pop(lua, 1);
    }
    if (lua_isnil(lua, kName)) {
      raise_error(lua, "redis.register_function must get a function name argument");
    }
    if (lua_isnil(lua, kCallback)) {
      raise_error(lua, "redis.register_function must get a callback argument");
    }
    return flags;
  }
  if (lua_isstring(lua, 1) == 0) {
    raise_error(lua, "first argument to redis.register_function must be a string");
  }
  if (!lua_isfunction(lua, 2)) {
    raise_error(lua, "second argument to redis.register_function must be a function");
  }
  lua_settop(lua, 2);
  lua_pushnil(lua);
  lua_insert(lua, 1);  // instead of a table
  lua_pushnil(lua);
  lua_insert(lua, kDescription);
  lua_tolstring(lua, kName, nullptr);
  return flags;
}

bool has_function(const FunctionLibrary& library, Bytes name) {
  for (const FunctionInfo& function : library.functions) {
    if (equals_ignore_case(function.name, name)) return true;
  }
  return false;
}

void forget(lua_State* lua, const std::vector<int>& references) {
  for (const int reference : references) luaL_unref(lua, LUA_REGISTRYINDEX, reference);
}

}  // namespace

int LuaMachine::register_function(lua_State* lua) {
  if (registration_ == nullptr) {
    return raise_error(lua, "redis.register_function can only be called on FUNCTION LOAD command");
  }
  const uint32_t flags = read_arguments(lua);
  const Bytes name = text_at(lua, kName);
  if (!is_library_name(name)) {
    return raise_error(lua,
                       "Library names can only contain letters, numbers, or underscores(_) and "
                       "must be at least one character long");
  }
  if (has_function(registration_->library, name)) {
    return raise_error(lua, "Function already exists in the library");
  }
  const bool described = !lua_isnil(lua, kDescription);
  const Bytes description = described ? text_at(lua, kDescription) : Bytes();
  lua_pushvalue(lua, kCallback);
  const int reference = luaL_ref(lua, LUA_REGISTRYINDEX);
  // Nothing raises an error from here on.
  FunctionInfo function{std::string(name), std::nullopt, flags};
  if (described) function.description = description;
  registration_->library.functions.push_back(std::move(function));
  registration_->references.push_back(reference);
  return 0;
}

Status LuaMachine::run_library(Registration& registration, bool known) {
  CHECK(kind_ == SandboxKind::kFunctions && call_ == nullptr);
  const FunctionLibrary& library = registration.library;
  const Bytes code = Bytes(library.code).substr(library.code_begin);
  if (load_source(lua_, code, "@user_function", SourceDialect::kLua51, !known) != 0) {
    const char* const text = lua_tostring(lua_, -1);
    std::string error = "ERR Error compiling function: ";
    error += text == nullptr ? "no message" : text;
    lua_pop(lua_, 1);
    return refusal(std::move(error));
  }
  registration_ = &registration;
  begin_us_ = 0;
  depth = 0;
  pace_.begin();
  set_hook(static_cast<int>(pace_.instructions()));
  // Libraries may take half of the limit, so that there is room for their functions to run.
  memory_.set_limit_bytes(
      engine_.options().script_memory_limit_bytes.load(std::memory_order_relaxed) / 2);
  memory_.make_room(lua_, memory_.limit_bytes() / 2);
  show_globals(lua_, kLoadingGlobalsSlot);
  memory_.allow(memory_.limit_bytes());
  const int status = lua_pcall(lua_, 0, 0, kHandlerSlot);
  memory_.allow(LuaMemory::kUnlimited);
  show_globals(lua_, kGlobalsSlot);
  registration_ = nullptr;
  collect_after_run();
  if (status == 0) return {};
  std::string error = "ERR Error registering functions: ";
  const auto text = lua_istable(lua_, -1) ? string_field(lua_, "err") : std::nullopt;
  error += text.value_or("not enough memory");
  lua_settop(lua_, kLastSlot);
  forget(lua_, registration.references);
  return refusal(std::move(error));
}

Result<std::shared_ptr<FunctionLibrary>> LuaMachine::load_library(Bytes code) {
  Registration registration;
  registration.library.code = code;
  Status status = parse_library_head(registration.library);
  if (status.ok()) status = run_library(registration, false);
  if (!status.ok()) return status;
  // References that were registered here are not needed before the library is in the set.
  forget(lua_, registration.references);
  if (registration.library.functions.empty()) return refusal("ERR No functions registered");
  auto library = std::make_shared<FunctionLibrary>();
  library->name = std::move(registration.library.name);
  library->code = std::move(registration.library.code);
  library->code_begin = registration.library.code_begin;
  library->functions = std::move(registration.library.functions);
  return library;
}

Result<int> LuaMachine::function_reference(const FunctionSet::Place& place) {
  const auto found = loaded_.find(place.library);
  if (found != loaded_.end()) return found->second[place.index];
  Registration registration;
  registration.library.code = place.library->code;
  registration.library.code_begin = place.library->code_begin;
  Status status = run_library(registration, true);
  if (!status.ok()) return status;
  // In the order of the library's list, whatever order its code has registered them in this time.
  std::vector<int> references(place.library->functions.size(), LUA_NOREF);
  for (size_t i = 0; i < references.size(); ++i) {
    for (size_t k = 0; k < registration.references.size(); ++k) {
      if (registration.library.functions[k].name == place.library->functions[i].name) {
        references[i] = registration.references[k];
      }
    }
  }
  const int reference = references[place.index];
  loaded_.emplace(place.library, std::move(references));
  if (reference == LUA_NOREF) return refusal("ERR Function not found");
  return reference;
}

void LuaMachine::follow_functions(uint64_t generation, std::shared_ptr<const FunctionSet> set) {
  // While a running function serves sockets, another request may need the shards of a function.
  if (call_ != nullptr) return;
  functions_generation_ = generation;
  functions_ = std::move(set);
  const size_t gone = std::erase_if(loaded_, [&](const auto& item) {
    const auto found = functions_->libraries.find(item.first->name);
    if (found != functions_->libraries.end() && found->second == item.first) return false;
    forget(lua_, item.second);
    return true;
  });
  if (gone != 0 && functions_->libraries.empty()) memory_.collect(lua_);
}

void LuaMachine::run_function(Call& call, const FunctionSet::Place& place, int reference,
                              size_t key_count, bool read_only) {
  const FunctionInfo& function = place.library->functions[place.index];
  // Another thread may replace the library while its function runs.
  const LibraryPointer keep = place.library;
  const std::string name = function.name;
  begin_run(call, function.flags | kScriptDeclared, keep->reaches_further, read_only);
  lua_rawgeti(lua_, LUA_REGISTRYINDEX, reference);
  push_list(lua_, call.args.subspan(3, key_count));
  push_list(lua_, call.args.subspan(3 + key_count));
  finish_run(lua_call_protected(2), name);
}

}  // namespace sluice
