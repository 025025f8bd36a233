// Help and shell completion, generated from the rows.
//
// Pure functions.
#pragma once

#include <span>
#include <string>

#include "tools/cli/arguments.h"

namespace sluice::cli {

std::string general_help(std::span<const CommandRow> rows);
std::string command_help(const CommandRow& row);
// Empty if this shell is not supported.
std::string completion_script(const std::string& shell);
// The whole help as a manual page, for man.
std::string man_page(std::span<const CommandRow> rows);

}  // namespace sluice::cli
