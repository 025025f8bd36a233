// HELP of a container command, generated from its rows.
#pragma once

namespace sluice {

struct Call;

// Two lines for each subcommand: its name with arguments, and its summary.
void reply_help(Call& call);

// The error for a subcommand with invalid arguments.
void reply_subcommand_error(Call& call);

}  // namespace sluice
