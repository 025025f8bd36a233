// The families of commands; each defines its rows in the file of its name.
#pragma once

#include <array>
#include <span>

#include "engine/commands/command.h"

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

inline std::array<std::span<const Command>, 20> command_families() {
  return {kConnectionCommands,  kKeyCommands,         kStringCommands,    kBitCommands,
          kHyperLogLogCommands, kListCommands,        kHashCommands,      kSetCommands,
          kSortedSetCommands,   kGeoCommands,         kStreamCommands,    kQueueCommands,
          kPubsubCommands,      kTransactionCommands, kScriptingCommands, kFunctionCommands,
          kAclCommands,         kServerCommands,      kLatencyCommands,   kStandaloneCommands};
}

}  // namespace sluice
