#include "net/io/execution_levels.h"

#include <utility>

namespace sluice {

ExecutionLevels::ExecutionLevels(Engine& engine, bool hold_shards)
    : engine_(engine), hold_shards_(hold_shards) {
  add_level();
}

void ExecutionLevels::add_level() {
  levels_.push_back(std::make_unique<Level>(engine_));
  levels_.back()->execution->set_hold_shards(hold_shards_);
  if (levels_.size() > 1) levels_.back()->execution->set_nested_in_another();
}

void ExecutionLevels::enter_nested() {
  ++depth_;
  if (levels_.size() == depth_) add_level();
}

void ExecutionLevels::run_outermost(std::function<void()> task) {
  if (depth_ == 0) return task();
  put_off_.push_back(std::move(task));
}

void ExecutionLevels::run_put_off() {
  for (const auto& task : std::exchange(put_off_, {})) task();
}

}  // namespace sluice
