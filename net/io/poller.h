// Poller: what one I/O thread waits for: an epoll set with the sockets of its sessions, Asio's
// reactor, and the wake-ups of other threads.
//
// Why not Asio's reactor for each socket: its async_read_some tries to read as soon as it is asked,
// before the client can have answered, so that every request costs a recv() in vain; and it has no
// notion of a turn (everything that is ready now), which the journal's flush and the order "read
// all, then write all" need. So the sessions' sockets are here, and Asio's own set is one more
// descriptor in this one: timers, listeners and whatever else is Asio's run when it is readable. A
// turn then costs one system call for waiting, as in Redis. (With this set inside of Asio's it cost
// three: Asio's wait, its epoll_ctl to wait again, and the look at this set.)
//
// Edge-triggered for sockets: an event is told once, and the session remembers what it has not used
// yet. Threads: the I/O thread's only, but for wake(). Does not own the sockets; whoever closes one
// needs no remove.
#pragma once

#include <sys/epoll.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <utility>

#include "net/io/asio_types.h"

namespace sluice {

class Session;

class Poller {
 public:
  explicit Poller(asio::io_context& context);
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  // Reports reading, writing and the peer's end of `fd`, from now on and until it is closed.
  // False: the kernel refuses (errno says why).
  bool add(int fd, Session& session);

  // Waits until something happens, for ever if `block`; otherwise only looks. Returns how many of
  // `events` are filled, each of them a session's.
  size_t wait(std::span<epoll_event> events, bool block);
  static Session& session_of(const epoll_event& event) {
    return *static_cast<Session*>(event.data.ptr);
  }
  // Whether the last waits have seen something for Asio; asks once.
  bool take_reactor_ready() { return std::exchange(reactor_ready_, false); }

  // How long it has waited in all.
  std::chrono::microseconds idle() const {
    return std::chrono::duration_cast<std::chrono::microseconds>(idle_);
  }

  // Any thread: ends the wait that goes on, or the next one.
  void wake();

 private:
  using Clock = std::chrono::steady_clock;

  int take(std::span<epoll_event> events, int timeout_ms);
  int look_before_sleep(std::span<epoll_event> events, Clock::time_point now);
  void add_own(int fd, uint32_t events, void* name);

  int set_fd_;
  int wake_fd_;
  bool reactor_ready_ = false;
  int looks_paid_ = 0;  // credit for looking before a sleep
  unsigned sleeps_ = 0;
  Clock::time_point turn_began_;
  Clock::duration idle_{0};
};

}  // namespace sluice
