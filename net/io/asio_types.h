// The Asio types that net/ uses, with an executor of our own.
//
// One thread of Asio waits for all sockets and timers (net/io/asio_thread.h); the handlers of an
// I/O thread's objects run as tasks of that I/O thread. So these objects and what their handlers
// use belong to one I/O thread. An operation may also have ended when it is cancelled: its handler
// is then on the way, and runs without an error.
#pragma once

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <chrono>
#include <memory>
#include <type_traits>
#include <utility>

#include "net/io/task_queue.h"

namespace sluice {

namespace asio = boost::asio;
using boost::system::error_code;

// The context must outlive the objects that have this executor; the queue, their handlers.
class IoExecutor {
 public:
  IoExecutor(asio::io_context& context, TaskQueue& tasks) : context_(&context), tasks_(&tasks) {}

  // Any thread.
  template <class Function>
  void execute(Function&& function) const {
    // Asio's functions can only be moved.
    tasks_->post([shared = std::make_shared<std::decay_t<Function>>(
                      std::forward<Function>(function))] { std::move (*shared)(); });
  }
  asio::io_context& query(asio::execution::context_t) const noexcept { return *context_; }
  static constexpr asio::execution::blocking_t query(asio::execution::blocking_t) noexcept {
    return asio::execution::blocking.never;
  }
  bool operator==(const IoExecutor&) const noexcept = default;

 private:
  asio::io_context* context_;
  TaskQueue* tasks_;
};

using Descriptor = asio::posix::basic_stream_descriptor<IoExecutor>;
using SteadyTimer =
    asio::basic_waitable_timer<std::chrono::steady_clock,
                               asio::wait_traits<std::chrono::steady_clock>, IoExecutor>;

}  // namespace sluice
