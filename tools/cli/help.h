// Help and shell completion, made of the rows.
//
// Pure functions.
#pragma once

#include <span>
#include <string>

#include "tools/cli/arguments.h"

namespace sluice::cli {

std::string general_help(std::span<const CommandRow> rows);
std::string command_help(const CommandRow& row);
// Empty: there is none for this shell.
std::string completion_script(const std::string& shell, std::span<const CommandRow> rows);
// All of it as a page of the manual, for man.
std::string man_page(std::span<const CommandRow> rows);

}  // namespace sluice::cli
