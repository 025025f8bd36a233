#include "net/io/mailbox.h"

#include <utility>

#include "net/io/journal_gate.h"
#include "net/io/session.h"
#include "net/io/thread_signals.h"

namespace sluice {

namespace {

// Limit for each turn: replies to blocked commands and kills, of which each connection has at most
// one.
constexpr size_t kMaxEndsPerTurn = 64;

}  // namespace

void Mailbox::send(Mail mail) {
  bool first = false;
  {
    MutexLock lock(mutex_);
    first = mail_.empty();
    mail_.push_back(std::move(mail));
  }
  if (first) signals_.raise(ThreadSignals::kMailWaits);
}

void Mailbox::deliver() {
  // Local variables, because a session may run a script that polls, which receives more mail.
  std::vector<Mail> batch = std::move(at_hand_);
  std::vector<Session*> dirty = std::move(dirty_at_hand_);
  // More mail may follow the rest of the last batch, for which there is no further signal.
  bool more = !batch.empty();
  if (!more) {
    MutexLock lock(mutex_);
    batch.swap(mail_);
  }
  size_t ends_left = kMaxEndsPerTurn;
  gate_.begin_mail();
  while (next_ != batch.size() && ends_left != 0) {
    Mail mail = std::move(batch[next_++]);
    if (mail.is_end()) --ends_left;
    Session* session = mail.to->session();
    if (session == nullptr) continue;
    session->take_mail(mail);
    if (session->places.dirty) continue;
    session->places.dirty = true;
    dirty.push_back(session);
  }
  gate_.end_mail();
  for (Session* session : dirty) {
    session->places.dirty = false;
    session->write_out();
  }
  dirty.clear();
  if (next_ == batch.size()) {
    batch.clear();
    next_ = 0;
  } else {
    more = true;
  }
  if (more) signals_.raise(ThreadSignals::kMailWaits);
  at_hand_ = std::move(batch);
  dirty_at_hand_ = std::move(dirty);
}

}  // namespace sluice
