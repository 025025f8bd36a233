// ExecutionLevels: the Execution and the request batch of an I/O thread, one pair for each depth:
// while a script polls (IoThread::poll_nested), the outer ones are in use. Used by the I/O thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "engine/execution/execution.h"
#include "net/io/request_batch.h"

namespace sluice {

class ExecutionLevels {
 public:
  ExecutionLevels(Engine& engine, bool hold_shards);

  Execution& execution() { return *levels_[depth_]->execution; }
  RequestBatch& batch() { return levels_[depth_]->batch; }
  // Whether the thread is the only one in the engine, so that it may read the shards without locks
  // (engine/execution/prefetch.h).
  bool may_prefetch() const { return hold_shards_ && depth_ == 0; }

  // A command is polling. It holds shards, so nothing that locks a shard may run.
  bool nested() const { return depth_ != 0; }
  void enter_nested();
  void leave_nested() { --depth_; }
  // Runs `task` at once, or when the polling command has ended.
  void run_outermost(std::function<void()> task);
  void run_put_off();

 private:
  struct Level {
    explicit Level(Engine& engine) : execution(std::make_unique<Execution>(engine)) {}
    std::unique_ptr<Execution> execution;
    RequestBatch batch;
  };

  void add_level();

  Engine& engine_;
  const bool hold_shards_;
  std::vector<std::unique_ptr<Level>> levels_;
  size_t depth_ = 0;
  std::vector<std::function<void()>> put_off_;
};

}  // namespace sluice
