// Poller: the events an I/O thread waits for: an epoll set with the sockets of its sessions, and
// wake-ups by other threads.
//
// These sockets are not in Asio's reactor, for two reasons. Its async_read_some tries to read
// immediately, before the client can have replied, so every request would cost a useless recv().
// And it has no notion of a turn (everything that is ready now), which the journal's flush and the
// order "read all, then write all" require. A turn costs one system call for waiting, as in Redis.
//
// Socket events are edge-triggered: an event is reported once, and the session remembers what it
// has not used. Threads: used by the I/O thread, except wake(). Does not own the sockets; a closed
// socket need not be removed.
#pragma once

#include <sys/epoll.h>

#include <chrono>
#include <cstdint>
#include <span>

namespace sluice {

class Session;

class Poller {
 public:
  Poller();
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  // Reports readability, writability and the peer's end of `fd` until it is closed. Returns false
  // if the kernel refuses (see errno).
  bool add(int fd, Session& session);

  // Waits until something happens, without a limit if `block`; otherwise only polls. Returns the
  // number of `events` filled, each of which belongs to a session.
  size_t wait(std::span<epoll_event> events, bool block);
  static Session& session_of(const epoll_event& event) {
    return *static_cast<Session*>(event.data.ptr);
  }

  // The total time spent waiting.
  std::chrono::microseconds idle() const {
    return std::chrono::duration_cast<std::chrono::microseconds>(idle_);
  }

  // Any thread: ends the present wait, or the next one.
  void wake();

 private:
  using Clock = std::chrono::steady_clock;

  int take(std::span<epoll_event> events, int timeout_ms);
  int look_before_sleep(std::span<epoll_event> events, Clock::time_point now);

  int set_fd_;
  int wake_fd_;
  int looks_paid_ = 0;  // credit for polling before a sleep
  unsigned sleeps_ = 0;
  Clock::time_point turn_began_;
  Clock::duration idle_{0};
};

}  // namespace sluice
