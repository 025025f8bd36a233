#include "engine/base/thread.h"

#include <time.h>

#include <memory>
#include <system_error>
#include <utility>

#include "engine/base/check.h"

#if defined(__linux__)
#include <sys/prctl.h>
#endif

namespace sluice {

namespace {

struct Begin {
  std::string name;
  std::function<void()> run;
};

void* run_thread(void* argument) {
  const std::unique_ptr<Begin> begin(static_cast<Begin*>(argument));
  ::pthread_setname_np(::pthread_self(), begin->name.c_str());
  begin->run();
  return nullptr;
}

}  // namespace

Thread::Thread(const std::string& name, std::function<void()> run) {
  auto begin = std::make_unique<Begin>(Begin{name, std::move(run)});
  pthread_attr_t attributes;
  CHECK(::pthread_attr_init(&attributes) == 0);
  CHECK(::pthread_attr_setstacksize(&attributes, kStackBytes) == 0);
  const int error = ::pthread_create(&handle_, &attributes, run_thread, begin.get());
  ::pthread_attr_destroy(&attributes);
  if (error != 0) {
    throw std::system_error(error, std::generic_category(), "cannot create the thread " + name);
  }
  static_cast<void>(begin.release());  // The thread owns it now.
  joinable_ = true;
}

void Thread::wake_on_time() {
#if defined(__linux__)
  ::prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0);
#endif
}

int64_t Thread::cpu_us() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return used.tv_sec * 1'000'000 + used.tv_nsec / 1000;
}

Thread::Thread(Thread&& other) noexcept
    : handle_(other.handle_), joinable_(std::exchange(other.joinable_, false)) {}

Thread& Thread::operator=(Thread&& other) noexcept {
  CHECK(!joinable_);
  handle_ = other.handle_;
  joinable_ = std::exchange(other.joinable_, false);
  return *this;
}

Thread::~Thread() { CHECK(!joinable_); }

void Thread::join() {
  CHECK(joinable_);
  ::pthread_join(handle_, nullptr);
  joinable_ = false;
}

}  // namespace sluice
