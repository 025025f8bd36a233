// AsioHandlers: the io_context of an I/O thread, and the share of a turn that its handlers get.
//
// The context is made without locks for its sockets (BOOST_ASIO_CONCURRENCY_HINT_UNSAFE_IO), and it
// runs only when the poller or expect() say so: who has work for it on another thread calls
// IoThread::post(), never asio::post(). Threads: the I/O thread's.
#pragma once

#include "net/io/asio_types.h"

namespace sluice {

class AsioHandlers {
 public:
  AsioHandlers();

  asio::io_context& context() { return context_; }
  // Some may be ready.
  void expect() { expected_ = true; }
  bool expected() const { return expected_; }
  // Those that are ready, as many as fit a turn.
  void run();
  // All that are ready, at the end of the thread.
  void run_all();

 private:
  asio::io_context context_;
  asio::executor_work_guard<IoExecutor> work_;
  bool expected_ = false;
};

}  // namespace sluice
