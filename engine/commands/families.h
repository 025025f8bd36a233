// The families of commands. Each defines its rows in the file with its name.
#pragma once

#include <span>

#include "engine/table/command.h"

namespace sluice {

extern const std::span<const Command> kConnectionCommands;
extern const std::span<const Command> kKeyCommands;
extern const std::span<const Command> kStringCommands;
extern const std::span<const Command> kBitCommands;
extern const std::span<const Command> kHyperLogLogCommands;
extern const std::span<const Command> kListCommands;
extern const std::span<const Command> kHashCommands;
extern const std::span<const Command> kSetCommands;
extern const std::span<const Command> kSortedSetCommands;
extern const std::span<const Command> kGeoCommands;
extern const std::span<const Command> kStreamCommands;
extern const std::span<const Command> kQueueCommands;
extern const std::span<const Command> kPubsubCommands;
extern const std::span<const Command> kTransactionCommands;
extern const std::span<const Command> kScriptingCommands;
extern const std::span<const Command> kFunctionCommands;
extern const std::span<const Command> kAclCommands;
extern const std::span<const Command> kServerCommands;
extern const std::span<const Command> kLatencyCommands;
extern const std::span<const Command> kStandaloneCommands;

// Makes CommandTable::instance() the table of all these. Thread-safe; CompleteEngine calls it.
void install_commands();

}  // namespace sluice
