// The Asio types that net/ uses, all with io_context's own executor: a polymorphic executor would
// cost an indirect call, and sometimes an allocation, per operation.
#pragma once

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <chrono>

namespace sluice {

namespace asio = boost::asio;
using boost::system::error_code;

using IoExecutor = asio::io_context::executor_type;
using Descriptor = asio::posix::basic_stream_descriptor<IoExecutor>;
using SteadyTimer =
    asio::basic_waitable_timer<std::chrono::steady_clock,
                               asio::wait_traits<std::chrono::steady_clock>, IoExecutor>;

}  // namespace sluice
