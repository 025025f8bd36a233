// SocketEdges: reported events of a session's socket that the session has not used up. An edge is
// reported once (net/io/poller.h), so it is kept here until a read or write exhausts it.
#pragma once

#include <sys/epoll.h>

#include <cstdint>

namespace sluice {

struct SocketEdges {
  bool readable = false;    // the kernel may have input
  bool peer_ended = false;  // read until the end of the input, whatever the size of a read
  // The kernel accepts no more output; the poller will report when it does.
  bool awaiting_write = false;

  void take(uint32_t events) {
    constexpr uint32_t kEnds = EPOLLRDHUP | EPOLLHUP | EPOLLERR;
    if ((events & (EPOLLIN | kEnds)) != 0) readable = true;
    if ((events & kEnds) != 0) peer_ended = true;
    if ((events & (EPOLLOUT | kEnds)) != 0) awaiting_write = false;
  }
};

}  // namespace sluice
