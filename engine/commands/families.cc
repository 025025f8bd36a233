#include "engine/commands/families.h"

#include <array>

namespace sluice {

void install_commands() {
  const std::array families = {
      kConnectionCommands,  kKeyCommands,         kStringCommands,    kBitCommands,
      kHyperLogLogCommands, kListCommands,        kHashCommands,      kSetCommands,
      kSortedSetCommands,   kGeoCommands,         kStreamCommands,    kQueueCommands,
      kPubsubCommands,      kTransactionCommands, kScriptingCommands, kFunctionCommands,
      kAclCommands,         kServerCommands,      kLatencyCommands,   kStandaloneCommands};
  CommandTable::install(families);
}

}  // namespace sluice
