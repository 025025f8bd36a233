// Outage: lets a command that follows something survive a lost connection and a restart.
//
// Used by one thread.
#pragma once

#include "tools/cli/context.h"
#include "tools/cli/failure.h"

namespace sluice::cli {

class Outage {
 public:
  explicit Outage(const Context& context) : context_(context) {}

  // Whether the command may be tried again: the server cannot be reached, or is loading. Says so
  // once on standard error, and waits a moment.
  bool survives(const Failure& failure);
  // After a success: says that the connection is back.
  void ends();

 private:
  const Context& context_;
  bool lost_ = false;
};

}  // namespace sluice::cli
