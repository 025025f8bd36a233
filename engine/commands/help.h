// HELP of a container command, written from its rows.
#pragma once

namespace sluice {

struct Call;

// One line for each subcommand with its arguments, one with its summary.
void reply_help(Call& call);

}  // namespace sluice
