#include "net/io/socket_turn.h"

#include <utility>

#include "net/io/session.h"

namespace sluice {

void SocketTurn::add_continuing(Session& session) {
  if (session.places.continuing) return;
  session.places.continuing = true;
  continuing_.push_back(&session);
}

void SocketTurn::run(std::span<const epoll_event> events) {
  const bool was_on = std::exchange(on_, true);
  // Those that ask again meanwhile do so for the next turn.
  const std::vector<Session*> continuing = std::exchange(continuing_, {});
  // A script that polls comes here again and takes what is left of the turn that it holds up: its
  // edges are not told twice.
  events_.insert(events_.end(), events.begin(), events.end());
  while (next_event_ != events_.size()) {
    const epoll_event event = events_[next_event_++];
    Poller::session_of(event).on_events(event.events);
  }
  if (!was_on) {
    events_.clear();
    next_event_ = 0;
  }
  for (Session* session : continuing) {
    session->places.continuing = false;
    session->go_on();
  }
  on_ = was_on;
}

}  // namespace sluice
