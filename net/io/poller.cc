#include "net/io/poller.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "engine/base/check.h"

namespace sluice {

namespace {

// A poll without events takes some 0.3 us.
constexpr int kLooksBeforeSleep = 10;
// Polling continues while more than a third of the attempts succeed.
constexpr int kCreditOfSuccess = 2;
constexpr int kMaxCredit = 32;
constexpr unsigned kSleepsPerTrial = 32;
constexpr auto kLongTurn = std::chrono::microseconds(40);

}  // namespace

Poller::Poller()
    : set_fd_(::epoll_create1(EPOLL_CLOEXEC)), wake_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  CHECK(set_fd_ >= 0 && wake_fd_ >= 0);
  epoll_event event{};
  // Each write is a new edge, so nobody needs to read it.
  event.events = EPOLLIN | EPOLLET;
  event.data.ptr = &wake_fd_;
  CHECK(::epoll_ctl(set_fd_, EPOLL_CTL_ADD, wake_fd_, &event) == 0);
}

Poller::~Poller() {
  ::close(set_fd_);
  ::close(wake_fd_);
}

bool Poller::add(int fd, Session& session) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.ptr = &session;
  return ::epoll_ctl(set_fd_, EPOLL_CTL_ADD, fd, &event) == 0;
}

size_t Poller::wait(std::span<epoll_event> events, bool block) {
  const Clock::time_point began = Clock::now();
  int count = block ? look_before_sleep(events, began) : 0;
  if (count == 0) count = take(events, block ? -1 : 0);
  turn_began_ = Clock::now();
  if (block) idle_ += turn_began_ - began;
  size_t kept = 0;
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<size_t>(i)];
    if (event.data.ptr != &wake_fd_) events[kept++] = event;
  }
  return kept;
}

int Poller::take(std::span<epoll_event> events, int timeout_ms) {
  return ::epoll_wait(set_fd_, events.data(), static_cast<int>(events.size()), timeout_ms);
}

// A sleep and the wake-up cost this thread and the client several microseconds. Under load the next
// request is often nearer than that, so it pays to poll a few times first. This adapts: with few or
// slow clients nothing arrives, and then only some sleeps try. After a long turn, as with
// pipelines, the sleep is short compared with the work, and polling only costs.
int Poller::look_before_sleep(std::span<epoll_event> events, Clock::time_point now) {
  if (now - turn_began_ > kLongTurn) return 0;
  if (looks_paid_ == 0 && ++sleeps_ % kSleepsPerTrial != 0) return 0;
  for (int i = 0; i < kLooksBeforeSleep; ++i) {
    const int count = take(events, 0);
    if (count <= 0) continue;
    looks_paid_ = std::min(looks_paid_ + kCreditOfSuccess, kMaxCredit);
    return count;
  }
  looks_paid_ = std::max(looks_paid_ - 1, 0);
  return 0;
}

void Poller::wake() {
  const uint64_t one = 1;
  // It can only fail if the counter is full, and then a wake-up is on its way.
  static_cast<void>(!::write(wake_fd_, &one, sizeof(one)));
}

}  // namespace sluice
