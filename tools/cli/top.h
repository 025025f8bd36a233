// The command top: TopModel on a terminal, with the answers of a server.
#pragma once

#include <span>

#include "tools/cli/context.h"

namespace sluice::cli {

std::span<const Option> top_options();
int run_top(Context& context);

}  // namespace sluice::cli
