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
  // Sessions that ask again during this are for the next turn.
  const std::vector<Session*> continuing = std::exchange(continuing_, {});
  // A polling script re-enters this function and takes the rest of the turn that it delays: its
  // edges are not reported again.
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
