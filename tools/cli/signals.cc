#include "tools/cli/signals.h"

#include <poll.h>
#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "engine/base/check.h"

namespace sluice::cli {

Signals::Signals(std::initializer_list<int> numbers) {
  sigset_t mask;
  sigemptyset(&mask);
  for (const int number : numbers) sigaddset(&mask, number);
  CHECK(::pthread_sigmask(SIG_BLOCK, &mask, nullptr) == 0);
  descriptor_ = ::signalfd(-1, &mask, SFD_CLOEXEC);
  CHECK(descriptor_ >= 0);
}

Signals::~Signals() { ::close(descriptor_); }

Signals::Woken Signals::wait(std::chrono::milliseconds time, int input) {
  using std::chrono::steady_clock;
  const auto end = steady_clock::now() + time;
  std::array<pollfd, 2> polled = {pollfd{descriptor_, POLLIN, 0}, pollfd{input, POLLIN, 0}};
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - steady_clock::now());
    const int limit = static_cast<int>(std::clamp<int64_t>(left.count(), 0, 1 << 30));
    const int count = ::poll(polled.data(), polled.size(), limit);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return {};
    if (polled[0].revents == 0) return {Event::kInput, 0};
    signalfd_siginfo info{};
    CHECK(::read(descriptor_, &info, sizeof(info)) == sizeof(info));
    return {Event::kSignal, static_cast<int>(info.ssi_signo)};
  }
}

}  // namespace sluice::cli
