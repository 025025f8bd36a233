// Commands of Redis 7.0 that are left out on purpose (PROTOCOL.md lists them), for users' rights
// only: a redis.conf or an ACL file may name any command of Redis, although nobody can call these.
//
// Rows with name, arity, categories and keys, and no handler. Their ids follow those of
// CommandTable. Built once, then constant; any thread.
#pragma once

#include <span>

#include "engine/commands/command.h"

namespace sluice {

std::span<const Command> left_out_commands();

// In any case; null: there is none of this name.
const Command* find_left_out_command(Bytes name);

// All that rules may name, by id: those that can be called, then those that are left out.
size_t rule_command_count();
// REQUIRES: id < rule_command_count().
const Command& rule_command(size_t id);

}  // namespace sluice
