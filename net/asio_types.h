// The Asio types that net/ uses, all with io_context's own executor: a polymorphic executor would
// cost an indirect call and an allocation here and there on every operation.
#pragma once

#include <array>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <cstddef>
#include <new>

namespace sluice {

namespace asio = boost::asio;
using boost::system::error_code;

using IoExecutor = asio::io_context::executor_type;
using StreamSocket = asio::basic_stream_socket<asio::generic::stream_protocol, IoExecutor>;
using Descriptor = asio::posix::basic_stream_descriptor<IoExecutor>;
using SteadyTimer =
    asio::basic_waitable_timer<std::chrono::steady_clock,
                               asio::wait_traits<std::chrono::steady_clock>, IoExecutor>;

// Memory for the one operation of its kind that can be pending, so that starting it allocates
// nothing. Used by one thread.
class HandlerMemory {
 public:
  HandlerMemory() = default;
  HandlerMemory(const HandlerMemory&) = delete;
  HandlerMemory& operator=(const HandlerMemory&) = delete;

  void* allocate(size_t size) {
    if (in_use_ || size > sizeof(storage_)) return ::operator new(size);
    in_use_ = true;
    return storage_.data();
  }
  void deallocate(void* pointer) {
    if (pointer == storage_.data()) {
      in_use_ = false;
    } else {
      ::operator delete(pointer);
    }
  }

 private:
  alignas(std::max_align_t) std::array<std::byte, 192> storage_;
  bool in_use_ = false;
};

// The allocator that a handler names as its own.
template <typename T>
class HandlerAllocator {
 public:
  using value_type = T;

  explicit HandlerAllocator(HandlerMemory& memory) : memory_(&memory) {}
  template <typename U>
  HandlerAllocator(const HandlerAllocator<U>& other) noexcept : memory_(other.memory_) {}  // NOLINT

  T* allocate(size_t count) { return static_cast<T*>(memory_->allocate(count * sizeof(T))); }
  void deallocate(T* pointer, size_t) { memory_->deallocate(pointer); }

  template <typename U>
  bool operator==(const HandlerAllocator<U>& other) const {
    return memory_ == other.memory_;
  }

 private:
  template <typename U>
  friend class HandlerAllocator;

  HandlerMemory* memory_;
};

}  // namespace sluice
