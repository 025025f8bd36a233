// ThreadWatch: whether the I/O threads of a group's primary still end their turns. One that does
// not serves nobody, though the process lives and reaches etcd.
//
// It asks each thread once a second by a task, so that the threads themselves pay nothing. A thread
// is stuck if it ends no turn for `watchdog-ms`, unless a script within its limit
// (busy-reply-threshold) runs: that one may hold what all threads wait for.
//
// Used by one thread; it must end before the I/O threads do. Times are milliseconds of
// CLOCK_BOOTTIME.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/script/script_engine.h"
#include "net/io/io_thread.h"

namespace sluice {

class ThreadWatch {
 public:
  static constexpr int64_t kAskMs = 1000;

  // `patience_ms` 0: no thread is ever stuck.
  ThreadWatch(const std::vector<std::unique_ptr<IoThread>>& threads, ScriptEngine& scripts,
              int64_t patience_ms)
      : threads_(threads), scripts_(scripts), patience_ms_(patience_ms) {}

  // Asks, and looks for answers. The log says when a thread is found stuck, and when none is any
  // more.
  bool is_stuck(int64_t now_ms);

 private:
  struct Asked {
    std::shared_ptr<std::atomic<bool>> answered;
    int64_t at_ms = INT64_MIN;
  };

  void ask(size_t index, int64_t now_ms);
  void say(size_t stuck);

  const std::vector<std::unique_ptr<IoThread>>& threads_;
  ScriptEngine& scripts_;
  const int64_t patience_ms_;
  std::vector<Asked> asked_;
  int64_t looked_ms_ = 0;
  uint64_t script_looks_ = 0;
  int64_t script_ms_ = INT64_MIN;  // when a script within its limit was last seen
  bool was_stuck_ = false;
};

}  // namespace sluice
