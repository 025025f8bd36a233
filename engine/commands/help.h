// HELP of a container command, written from its rows.
#pragma once

namespace sluice {

struct Call;

// One line for each subcommand with its arguments, one with its summary.
void reply_help(Call& call);

// The error of a subcommand with arguments that it does not take.
void reply_subcommand_error(Call& call);

}  // namespace sluice
