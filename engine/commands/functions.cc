// FUNCTION, FCALL and FCALL_RO.
#include "engine/commands/families.h"
#include "engine/commands/help.h"
#include "engine/commands/scripting.h"
#include "engine/execution/call.h"
#include "engine/execution/engine.h"
#include "engine/rdb/function_payload.h"
#include "engine/reply/map_reply.h"
#include "engine/script/script_engine.h"

namespace sluice {

namespace {

void fcall_command(Call& call) { script_engine(call.engine).run_function(call, false); }
void fcall_ro_command(Call& call) { script_engine(call.engine).run_function(call, true); }

void function_load_command(Call& call) {
  bool replace = false;
  for (size_t i = 2; i + 1 < call.args.size(); ++i) {
    if (!call.option(i, "replace")) {
      return call.reply.error("ERR Unknown option given: " + std::string(call.args[i]));
    }
    replace = true;
  }
  const auto name = script_engine(call.engine).load_library(call, call.args.back(), replace);
  name.ok() ? call.reply.bulk(*name) : call.reply.error(name.status().message());
}

void function_delete_command(Call& call) {
  const bool deleted = script_engine(call.engine).delete_library(call, call.args[2]);
  deleted ? call.reply.ok() : call.reply.error("ERR Library not found");
}

// The error of a subcommand with too many arguments.
void reply_wrong_subcommand(Call& call) {
  call.reply.error("ERR unknown subcommand or wrong number of arguments for '" +
                   std::string(call.args[1]) + "'. Try FUNCTION HELP.");
}

void function_flush_command(Call& call) {
  if (call.args.size() > 3) return reply_wrong_subcommand(call);
  // Both modes are the same here: each Lua state frees its functions when it next runs.
  if (call.args.size() == 3 && !call.option(2, "sync") && !call.option(2, "async")) {
    return call.reply.error("ERR FUNCTION FLUSH only supports SYNC|ASYNC option");
  }
  script_engine(call.engine).flush_libraries(call);
  call.reply.ok();
}

void function_kill_command(Call& call) { call.reply_status(script_engine(call.engine).kill(true)); }

void function_stats_command(Call& call) { script_engine(call.engine).reply_function_stats(call); }

// --- FUNCTION DUMP, FUNCTION RESTORE ---

void function_dump_command(Call& call) {
  const std::shared_ptr<const FunctionSet> set = script_engine(call.engine).functions();
  std::vector<Bytes> codes;
  for (const auto& [name, library] : set->libraries) codes.push_back(library->code);
  call.reply.bulk(rdb::write_functions(codes));
}

void function_restore_command(Call& call) {
  if (call.args.size() > 4) return reply_wrong_subcommand(call);
  RestorePolicy policy = RestorePolicy::kAppend;
  if (call.args.size() == 4) {
    if (call.option(3, "flush")) {
      policy = RestorePolicy::kFlush;
    } else if (call.option(3, "replace")) {
      policy = RestorePolicy::kReplace;
    } else if (!call.option(3, "append")) {
      return call.reply.error(
          "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.");
    }
  }
  const uint64_t limit = call.engine.options().max_bulk_bytes.load(std::memory_order_relaxed);
  std::vector<std::string> codes;
  switch (rdb::read_functions(call.args[2], limit, codes)) {
    case rdb::FunctionsFault::kFooter:
      return call.reply.error("ERR DUMP payload version or checksum are wrong");
    case rdb::FunctionsFault::kOtherType:
      return call.reply.error("ERR given type is not a function");
    case rdb::FunctionsFault::kCutShort:
      return call.reply.error("ERR failed loading the given functions payload");
    case rdb::FunctionsFault::kNone:
      break;
  }
  call.reply_status(script_engine(call.engine).restore_libraries(call, codes, policy));
}

// --- FUNCTION LIST ---

void reply_function(Reply& reply, const FunctionInfo& function) {
  MapReply map(reply, 3);
  map.text("name", function.name);
  function.description ? map.text("description", *function.description) : map.null("description");
  size_t count = 0;
  for (const ScriptFlagName& known : kScriptFlagNames) {
    count += (function.flags & known.flag) != 0 ? 1 : 0;
  }
  map.field("flags").set(count);
  for (const ScriptFlagName& known : kScriptFlagNames) {
    if ((function.flags & known.flag) != 0) reply.simple(known.name);
  }
}

void reply_library(Reply& reply, const FunctionLibrary& library, bool with_code) {
  MapReply map(reply);
  map.text("library_name", library.name);
  map.text("engine", "LUA");
  map.field("functions").array(library.functions.size());
  for (const FunctionInfo& function : library.functions) reply_function(reply, function);
  if (with_code) map.text("library_code", library.code);
}

void function_list_command(Call& call) {
  bool with_code = false;
  const Bytes* pattern = nullptr;
  for (size_t i = 2; i < call.args.size(); ++i) {
    if (!with_code && call.option(i, "withcode")) {
      with_code = true;
    } else if (pattern == nullptr && call.option(i, "libraryname")) {
      if (++i == call.args.size()) {
        return call.reply.error("ERR library name argument was not given");
      }
      pattern = &call.args[i];
    } else {
      return call.reply.error("ERR Unknown argument " + std::string(call.args[i]));
    }
  }
  const size_t mark = call.reply.open_array();
  size_t count = 0;
  const std::shared_ptr<const FunctionSet> set = script_engine(call.engine).functions();
  for (const auto& [name, library] : set->libraries) {
    if (pattern != nullptr && !glob_match(*pattern, name, true)) continue;
    reply_library(call.reply, *library, with_code);
    ++count;
  }
  call.reply.close_array(mark, count);
}

// --- Rows ---

constexpr const char* kAllSucceeded = "request_policy:all_shards response_policy:all_succeeded";

const Command kFunctionSubcommands[] = {
    {.name = "delete",
     .flags = kWrite | kNoScript | kEveryShard,
     .handler = function_delete_command,
     .since = "7.0.0",
     .summary = "Removes a library and its functions.",
     .syntax = "library-name",
     .tips = kAllSucceeded},
    {.name = "dump",
     .flags = kNoScript | kEveryShard,
     .handler = function_dump_command,
     .since = "7.0.0",
     .complexity = "O(N) where N is the number of functions",
     .summary = "Returns all libraries in RDB's format."},
    {.name = "flush",
     .flags = kWrite | kNoScript | kEveryShard,
     .handler = function_flush_command,
     .since = "7.0.0",
     .complexity = "O(N) where N is the number of functions deleted",
     .summary = "Removes all libraries.",
     .syntax = "[ASYNC | SYNC]",
     .tips = kAllSucceeded},
    help_row("7.0.0"),
    {.name = "kill",
     .flags = kNoScript | kAllowBusy,
     .handler = function_kill_command,
     .since = "7.0.0",
     .summary = "Kills a slow function that has not written yet.",
     .tips = "request_policy:all_shards response_policy:one_succeeded"},
    {.name = "list",
     .flags = kNoScript | kEveryShard,
     .handler = function_list_command,
     .since = "7.0.0",
     .complexity = "O(N) where N is the number of functions",
     .summary = "Describes the libraries and their functions.",
     .syntax = "[LIBRARYNAME library-name-pattern] [WITHCODE]",
     .tips = "nondeterministic_output_order"},
    {.name = "load",
     .flags = kWrite | kDenyOom | kNoScript | kEveryShard,
     .handler = function_load_command,
     .since = "7.0.0",
     .complexity = "O(1) (considering compilation time is redundant)",
     .summary = "Loads a library of functions and returns its name.",
     .syntax = "[REPLACE] function-code",
     .tips = kAllSucceeded},
    {.name = "restore",
     .flags = kWrite | kDenyOom | kNoScript | kEveryShard,
     .handler = function_restore_command,
     .since = "7.0.0",
     .complexity = "O(N) where N is the number of functions on the payload",
     .summary = "Restores libraries from the reply of FUNCTION DUMP.",
     .syntax = "serialized-value [FLUSH | APPEND | REPLACE]",
     .tips = kAllSucceeded},
    {.name = "stats",
     .flags = kNoScript | kAllowBusy,
     .handler = function_stats_command,
     .since = "7.0.0",
     .summary = "Describes the running slow function, and counts libraries and functions.",
     .tips = "nondeterministic_output request_policy:all_shards response_policy:special"},
};

const Command kFunctionRows[] = {
    {.name = "fcall",
     .flags = kRunsLua,
     .keys = {kNotedWrittenKeys},
     .handler = fcall_command,
     .since = "7.0.0",
     .complexity = "Depends on the function that is executed.",
     .summary = "Runs a function of a library as one unit.",
     .syntax = "function numkeys [key [key ...]] [arg [arg ...]]",
     .script = ScriptName::kFunction},
    {.name = "fcall_ro",
     .flags = kRunsLua | kReadonly,
     .keys = {kNotedReadKeys},
     .handler = fcall_ro_command,
     .since = "7.0.0",
     .complexity = "Depends on the function that is executed.",
     .summary = "Runs a function that may only read.",
     .syntax = "function numkeys [key [key ...]] [arg [arg ...]]",
     .script = ScriptName::kFunction},
    {.name = "function",
     .flags = kContainer,
     .subcommands = kFunctionSubcommands,
     .since = "7.0.0",
     .complexity = "Depends on subcommand.",
     .summary = "Manages the libraries of functions."},
};

}  // namespace

const CommandFamily kFunctionCommands = {"scripting", kFunctionRows, kAclScripting};

}  // namespace sluice
