// Thread: one thread of the server, with a name and a stack of a known size.
//
// std::thread takes the stack size from `ulimit -s`, which may be too small for nested scripts.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <functional>
#include <string>

namespace sluice {

class Thread {
 public:
  // Address space only; memory is used on demand. Scripts may nest C functions that have buffers of
  // some kB on the stack, two hundred deep.
  static constexpr size_t kStackBytes = size_t{8} << 20;

  Thread() = default;
  // `name` is shown by the system and has at most 15 bytes. Throws std::system_error, whose text
  // names the thread, when the system refuses another thread.
  Thread(const std::string& name, std::function<void()> run);
  Thread(Thread&& other) noexcept;
  Thread& operator=(Thread&& other) noexcept;
  ~Thread();

  // Lets the waits of the calling thread end within a microsecond of their time. The kernel's
  // default slack of 50 us would stretch waits of some ten microseconds.
  static void wake_on_time();
  // The processor time of the calling thread, in microseconds: waits do not count.
  static int64_t cpu_us();

  bool joinable() const { return joinable_; }
  // REQUIRES: joinable().
  void join();

 private:
  pthread_t handle_{};
  bool joinable_ = false;
};

}  // namespace sluice
