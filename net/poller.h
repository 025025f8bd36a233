// Poller: the sockets of one I/O thread's sessions, in an epoll set of their own.
//
// Why not Asio's reactor for each socket: its async_read_some tries to read as soon as it is asked,
// before the client can have answered, so that every request costs a recv() in vain; and it has no
// notion of a turn (everything that is ready now), which the journal's flush and the order "read
// all, then write all" need. So the set itself is one descriptor in Asio's reactor: when it is
// readable, the I/O thread takes all events at once. Timers, posts, listeners and signals stay
// Asio's. Measured: bench/compare, rows without pipeline; an empty recv() a request less, and a
// third of the wake-ups at pipeline 16.
//
// Edge-triggered: an event is told once, and the session remembers what it has not used yet.
// Threads: the I/O thread's only. Does not own the sockets; whoever closes one needs no remove.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <span>

#include "net/asio_types.h"

namespace sluice {

class Session;

class Poller {
 public:
  explicit Poller(asio::io_context& context);

  // Reports reading, writing and the peer's end of `fd`, from now on and until it is closed.
  // False: the kernel refuses (errno says why).
  bool add(int fd, Session& session);

  // Takes up to `events.size()` of what has happened, without waiting.
  size_t take(std::span<epoll_event> events);
  static Session& session_of(const epoll_event& event) {
    return *static_cast<Session*>(event.data.ptr);
  }

  // Calls `handler()` once, when there is something to take. One call at a time may wait.
  template <class Handler>
  void async_wait(Handler handler) {
    descriptor_.async_wait(Descriptor::wait_read, std::move(handler));
  }
  void close();

 private:
  Descriptor descriptor_;
};

}  // namespace sluice
