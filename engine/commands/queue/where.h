// Selectors among the arguments of a command (`WHERE selector`).
#pragma once

#include "engine/commands/queue/args.h"
#include "engine/queue/selector.h"

namespace sluice {

// Reads the current option into the selector. Returns false if it is not an option of selectors; if
// it follows a selector, the selector has ended.
bool read_selector_option(OptionReader& options, const QueueConfig& config, Selector& selector);
// A selector needs ALL or at least one criterion. Returns false with the error replied.
bool check_selector(Call& call, const Selector& selector);

}  // namespace sluice
