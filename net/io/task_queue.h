// TaskQueue: the tasks of an I/O thread: what other threads post, what it puts off itself, and the
// handlers of its Asio objects (net/io/asio_types.h).
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <deque>
#include <functional>

#include "engine/base/mutex.h"

namespace sluice {

class ThreadSignals;

class TaskQueue {
 public:
  explicit TaskQueue(ThreadSignals& signals) : signals_(signals) {}

  // Any thread. Tasks run in the order in which they were posted.
  void post(std::function<void()> task);

  // --- The I/O thread. A task may run a script that polls, which re-enters run() ---
  // Tasks have been posted.
  void expect() { expected_ = true; }
  bool expected() const { return expected_; }
  // Runs as many tasks as fit into a turn.
  void run();
  // Runs all tasks. Returns how many.
  size_t run_all();
  // At the end of the thread: runs all tasks, also the handlers that Asio's thread, which runs
  // `context`, has not passed on yet.
  void finish(boost::asio::io_context& context);

 private:
  bool run_one();

  ThreadSignals& signals_;
  Mutex mutex_;
  std::deque<std::function<void()>> tasks_ GUARDED_BY(mutex_);
  bool expected_ = false;
};

}  // namespace sluice
