// Completions of a command line that only the server knows: names of queues, ids of jobs, bands.
// The completion scripts ask for them (completion.cc).
#pragma once

#include <span>
#include <string>

#include "tools/cli/arguments.h"

namespace sluice::cli {

// Prints one candidate a line; nothing if the server cannot be asked. `words` are the words before
// the cursor, without the program's name.
void print_candidates(std::span<const std::string> words, std::span<const CommandRow> rows);

}  // namespace sluice::cli
