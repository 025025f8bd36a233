#include "net/poller.h"

#include <unistd.h>

#include <cerrno>

#include "engine/base/check.h"

namespace sluice {

namespace {

int make_epoll_set() {
  const int fd = ::epoll_create1(EPOLL_CLOEXEC);
  CHECK(fd >= 0);
  return fd;
}

}  // namespace

Poller::Poller(asio::io_context& context) : descriptor_(context, make_epoll_set()) {}

bool Poller::add(int fd, Session& session) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.ptr = &session;
  return ::epoll_ctl(descriptor_.native_handle(), EPOLL_CTL_ADD, fd, &event) == 0;
}

size_t Poller::take(std::span<epoll_event> events) {
  const int count =
      ::epoll_wait(descriptor_.native_handle(), events.data(), static_cast<int>(events.size()), 0);
  return count > 0 ? static_cast<size_t>(count) : 0;
}

void Poller::close() {
  error_code ignored;
  descriptor_.close(ignored);
}

}  // namespace sluice
