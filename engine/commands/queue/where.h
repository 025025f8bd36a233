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

// What Q.LIST is asked for.
struct ListRequest {
  Selector selector;
  JobOrder order = JobOrder::kNone;
  Bytes cursor = "0";
  int64_t count = 0;   // 0: not given
  bool looks = false;  // whether the reply ends with the number of jobs that were examined
  ShownFields with;
};

// The parts of its reply before and behind the jobs.
void begin_page(Call& call, const ListRequest& request, Bytes cursor, size_t jobs);
void end_page(Call& call, const ListRequest& request, size_t looked_at);

}  // namespace sluice
