// AsioThread: the thread that waits for the sockets and timers of Asio, for all I/O threads.
//
// It runs no handler: IoExecutor passes each to the I/O thread to which its object belongs.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include "engine/base/thread.h"

namespace sluice {

class AsioThread {
 public:
  AsioThread() : work_(context_.get_executor()) {}
  ~AsioThread() { stop(); }
  AsioThread(const AsioThread&) = delete;
  AsioThread& operator=(const AsioThread&) = delete;

  boost::asio::io_context& context() { return context_; }
  // Throws like Thread. Called before the I/O threads start.
  void start();
  // Called after the I/O threads have ended, and before they are destroyed.
  void stop();

 private:
  boost::asio::io_context context_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  Thread thread_;
};

}  // namespace sluice
