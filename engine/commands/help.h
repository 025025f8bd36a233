// HELP of a container command, generated from its rows.
#pragma once

#include "engine/table/command.h"

namespace sluice {

// Two lines for each subcommand: its name with arguments, and its summary.
void reply_help(Call& call);

constexpr Command help_row(const char* since, uint32_t acl = 0) {
  return Command{.name = "help",
                 .flags = kLoading | kStale,
                 .acl = acl,
                 .handler = reply_help,
                 .since = since,
                 .summary = "Lists the subcommands."};
}

// The error for a subcommand with invalid arguments.
void reply_subcommand_error(Call& call);

}  // namespace sluice
