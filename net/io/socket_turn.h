// SocketTurn: the session sockets of an I/O thread: waits for them, and gives each session with
// work its turn. Used by the I/O thread.
#pragma once

#include <sys/epoll.h>

#include <span>
#include <vector>

#include "net/io/poller.h"

namespace sluice {

class Session;

class SocketTurn {
 public:
  Poller& poller() { return poller_; }
  const Poller& poller() const { return poller_; }
  // Sessions are running: replies are sent at the end of the turn.
  bool is_on() const { return on_; }
  // Calls Session::go_on in the next turn.
  void add_continuing(Session& session);
  bool has_continuing() const { return !continuing_.empty(); }
  void run(std::span<const epoll_event> events);

 private:
  Poller poller_;
  bool on_ = false;
  std::vector<Session*> continuing_;
  // The events reported in this turn, and how many have been handled.
  std::vector<epoll_event> events_;
  size_t next_event_ = 0;
};

}  // namespace sluice
