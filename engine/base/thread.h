// Thread: one thread of the server, with a name and a stack of a known size.
//
// std::thread takes its stack's size from `ulimit -s`, which may be too small for what nests, such
// as scripts.
#pragma once

#include <pthread.h>

#include <functional>
#include <string>

namespace sluice {

class Thread {
 public:
  // Address space; memory follows use. Scripts may nest C functions that have buffers of some kB
  // on the stack, two hundred deep.
  static constexpr size_t kStackBytes = size_t{8} << 20;

  Thread() = default;
  // `name` is what the system shows, at most 15 bytes. Throws std::system_error, whose text names
  // the thread, when the system gives no further one.
  Thread(const std::string& name, std::function<void()> run);
  Thread(Thread&& other) noexcept;
  Thread& operator=(Thread&& other) noexcept;
  ~Thread();

  bool joinable() const { return joinable_; }
  // REQUIRES: joinable().
  void join();

 private:
  pthread_t handle_{};
  bool joinable_ = false;
};

}  // namespace sluice
