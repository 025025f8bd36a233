// What may stand at the end of a command line that is being typed, where only the server knows it:
// names of queues, ids of jobs, bands. The completion scripts ask for it (completion.cc).
#pragma once

#include <span>
#include <string>

#include "tools/cli/arguments.h"

namespace sluice::cli {

// Prints them, a line each; nothing where the server cannot be asked. `words` are those before the
// cursor, without the program's name.
void print_candidates(std::span<const std::string> words, std::span<const CommandRow> rows);

}  // namespace sluice::cli
