// AsioHandlers: the io_context of an I/O thread, and the share of a turn that its handlers get.
//
// The context is created without locks for its sockets (BOOST_ASIO_CONCURRENCY_HINT_UNSAFE_IO), and
// runs only when the poller or expect() request it: other threads call IoThread::post(), never
// asio::post(). Threads: used by the I/O thread only.
#pragma once

#include "net/io/asio_types.h"

namespace sluice {

class AsioHandlers {
 public:
  AsioHandlers();

  asio::io_context& context() { return context_; }
  // Some handlers may be ready.
  void expect() { expected_ = true; }
  bool expected() const { return expected_; }
  // Runs ready handlers, as many as fit into a turn.
  void run();
  // Runs all ready handlers, at the end of the thread.
  void run_all();

 private:
  asio::io_context context_;
  asio::executor_work_guard<IoExecutor> work_;
  bool expected_ = false;
};

}  // namespace sluice
