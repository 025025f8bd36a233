// EVAL, EVALSHA, their _RO forms, and SCRIPT.
#include "engine/commands/scripting.h"
#include "engine/commands/families.h"
#include "engine/commands/help.h"
#include "engine/execution/call.h"
#include "engine/execution/engine.h"
#include "engine/script/script_engine.h"

namespace sluice {

namespace {

void eval_command(Call& call) { script_engine(call.engine).run(call, false, false); }
void evalsha_command(Call& call) { script_engine(call.engine).run(call, true, false); }
void eval_ro_command(Call& call) { script_engine(call.engine).run(call, false, true); }
void evalsha_ro_command(Call& call) { script_engine(call.engine).run(call, true, true); }

void script_load_command(Call& call) {
  const auto sha = script_engine(call.engine).load(call.execution, call.args[2]);
  sha.ok() ? call.reply.bulk(*sha) : call.reply.error(sha.status().message());
}

void script_exists_command(Call& call) {
  call.reply.array(call.args.size() - 2);
  for (const Bytes sha : call.args.subspan(2)) {
    call.reply.integer(script_engine(call.engine).exists(sha) ? 1 : 0);
  }
}

void script_flush_command(Call& call) {
  // Both modes are the same here: this thread's Lua state is replaced now, those of others soon.
  const bool mode_fits =
      call.args.size() == 2 ||
      (call.args.size() == 3 && (call.option(2, "sync") || call.option(2, "async")));
  if (!mode_fits) return call.reply.error("ERR SCRIPT FLUSH only support SYNC|ASYNC option");
  script_engine(call.engine).flush(call.execution);
  call.reply.ok();
}

void script_kill_command(Call& call) { call.reply_status(script_engine(call.engine).kill(false)); }

void script_debug_command(Call& call) {
  // There is no debugger; scripts run normally.
  const bool known = call.option(2, "no") || call.option(2, "yes") || call.option(2, "sync");
  known ? call.reply.ok() : call.reply.error("ERR Use SCRIPT DEBUG YES/SYNC/NO");
}

const Command kScriptSubcommands[] = {
    {.name = "flush",
     .flags = kNoScript,
     .handler = script_flush_command,
     .since = "2.6.0",
     .complexity = "O(N) with N being the number of scripts in cache",
     .summary = "Removes all scripts.",
     .syntax = "[ASYNC | SYNC]",
     .tips = "request_policy:all_nodes response_policy:all_succeeded"},
    {.name = "exists",
     .flags = kNoScript,
     .handler = script_exists_command,
     .since = "2.6.0",
     .complexity =
         "O(N) with N being the number of scripts to check (so checking a single script is "
         "an O(1) operation).",
     .summary = "Checks which scripts EVALSHA would find.",
     .syntax = "sha1 [sha1 ...]",
     .tips = "request_policy:all_shards response_policy:agg_logical_and"},
    {.name = "debug",
     .flags = kNoScript,
     .handler = script_debug_command,
     .since = "3.2.0",
     .summary = "Accepted without effect; there is no debugger.",
     .syntax = "<YES | SYNC | NO>"},
    help_row("5.0.0"),
    {.name = "kill",
     .flags = kNoScript | kAllowBusy,
     .handler = script_kill_command,
     .since = "2.6.0",
     .summary = "Kills a slow script that has not written yet.",
     .tips = "request_policy:all_shards response_policy:one_succeeded"},
    {.name = "load",
     .flags = kNoScript | kStale,
     .handler = script_load_command,
     .since = "2.6.0",
     .complexity = "O(N) with N being the length in bytes of the script body.",
     .summary = "Loads a script for EVALSHA and returns its SHA-1.",
     .syntax = "script",
     .tips = "request_policy:all_nodes response_policy:all_succeeded"},
};

const Command kScriptingRows[] = {
    {.name = "eval",
     .flags = kRunsLua,
     .keys = {kNotedWrittenKeys},
     .handler = eval_command,
     .since = "2.6.0",
     .complexity = "Depends on the script that is executed.",
     .summary = "Runs a Lua script as one unit.",
     .syntax = "script numkeys [key [key ...]] [arg [arg ...]]",
     .script = ScriptName::kText},
    {.name = "evalsha",
     .flags = kRunsLua,
     .keys = {kWrittenKeys},
     .handler = evalsha_command,
     .since = "2.6.0",
     .complexity = "Depends on the script that is executed.",
     .summary = "Runs a loaded script by its SHA-1.",
     .syntax = "sha1 numkeys [key [key ...]] [arg [arg ...]]",
     .script = ScriptName::kSha},
    {.name = "eval_ro",
     .flags = kRunsLua | kReadonly,
     .keys = {kNotedReadKeys},
     .handler = eval_ro_command,
     .since = "7.0.0",
     .complexity = "Depends on the script that is executed.",
     .summary = "Runs a Lua script that may only read.",
     .syntax = "script numkeys [key [key ...]] [arg [arg ...]]",
     .script = ScriptName::kText},
    {.name = "evalsha_ro",
     .flags = kRunsLua | kReadonly,
     .keys = {kReadKeys},
     .handler = evalsha_ro_command,
     .since = "7.0.0",
     .complexity = "Depends on the script that is executed.",
     .summary = "Runs a script that may only read, by its SHA-1.",
     .syntax = "sha1 numkeys [key [key ...]] [arg [arg ...]]",
     .script = ScriptName::kSha},
    {.name = "script",
     .flags = kContainer,
     .subcommands = kScriptSubcommands,
     .since = "2.6.0",
     .complexity = "Depends on subcommand.",
     .summary = "Manages the loaded scripts."},
};

}  // namespace

const CommandFamily kScriptingCommands = {"scripting", kScriptingRows, kAclScripting};

}  // namespace sluice
