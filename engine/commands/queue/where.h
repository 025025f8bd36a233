// Selectors among the arguments of a command (`WHERE selector`).
#pragma once

#include "engine/commands/queue/args.h"
#include "engine/queue/selector.h"

namespace sluice {

// Reads the present option into the selector. False: it is none of a selector's; where one stands
// behind a selector, the selector has ended.
bool read_selector_option(OptionReader& options, const QueueConfig& config, Selector& selector);
// A selector says ALL, or at least one criterion. False with the error replied.
bool check_selector(Call& call, const Selector& selector);

}  // namespace sluice
