// Completions of a command line: of commands, options and values by their rows; of names of queues,
// ids of jobs and bands by the server. The completion scripts ask for them (completion.cc).
#pragma once

#include <span>
#include <string>

#include "tools/cli/arguments.h"

namespace sluice::cli {

// Prints one candidate a line, with a tab and its description; "<files>" first where a file is
// meant. `words` are the words before the cursor, without the program's name.
void print_candidates(std::span<const std::string> words, std::span<const CommandRow> rows);

}  // namespace sluice::cli
