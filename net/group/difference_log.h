// DifferenceLog: says in the log when this node begins to differ from its primary in what is each
// node's own, and when it agrees again.
//
// Used by the group's thread.
#pragma once

#include <utility>

#include "engine/ports/group_port.h"
#include "storage/log_sink.h"

namespace sluice {

class DifferenceLog {
 public:
  explicit DifferenceLog(LogSink log) : log_(std::move(log)) {}

  void note(const GroupView& view);

 private:
  const LogSink log_;
  GroupDifference said_;
};

}  // namespace sluice
