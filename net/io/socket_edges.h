// SocketEdges: what the poller has told of a session's socket and the session has not used up. An
// edge is told once (net/io/poller.h), so it is kept here until a read or write meets its end.
#pragma once

#include <sys/epoll.h>

#include <cstdint>

namespace sluice {

struct SocketEdges {
  bool readable = false;    // the kernel may have input
  bool peer_ended = false;  // read on until the end of the input, however short a read was
  // The kernel takes no more output; the poller tells when there is room again.
  bool awaiting_write = false;

  void take(uint32_t events) {
    constexpr uint32_t kEnds = EPOLLRDHUP | EPOLLHUP | EPOLLERR;
    if ((events & (EPOLLIN | kEnds)) != 0) readable = true;
    if ((events & kEnds) != 0) peer_ended = true;
    if ((events & (EPOLLOUT | kEnds)) != 0) awaiting_write = false;
  }
};

}  // namespace sluice
