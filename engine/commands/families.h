// The families of commands. Each defines its rows in the file with its name.
#pragma once

#include "engine/table/command.h"

namespace sluice {

extern const CommandFamily kConnectionCommands;
extern const CommandFamily kKeyCommands;
extern const CommandFamily kStringCommands;
extern const CommandFamily kBitCommands;
extern const CommandFamily kHyperLogLogCommands;
extern const CommandFamily kListCommands;
extern const CommandFamily kHashCommands;
extern const CommandFamily kSetCommands;
extern const CommandFamily kSortedSetCommands;
extern const CommandFamily kGeoCommands;
extern const CommandFamily kStreamCommands;
extern const CommandFamily kQueueCommands;
extern const CommandFamily kPubsubCommands;
extern const CommandFamily kTransactionCommands;
extern const CommandFamily kScriptingCommands;
extern const CommandFamily kFunctionCommands;
extern const CommandFamily kAclCommands;
extern const CommandFamily kServerCommands;
extern const CommandFamily kLatencyCommands;
extern const CommandFamily kStandaloneCommands;

// Makes CommandTable::instance() the table of all these. Thread-safe; CompleteEngine calls it.
void install_commands();

}  // namespace sluice
