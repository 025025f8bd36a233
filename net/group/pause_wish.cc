#include "net/group/pause_wish.h"

namespace sluice {

void PauseWish::put(std::string value) {
  {
    const MutexLock lock(mutex_);
    value_ = std::move(value);
    ++number_;
    give_up_ms_ = now_ms_() + kPatienceMs;
    if (std::exchange(is_out_, true)) return;
  }
  send();
}

void PauseWish::send() {
  std::string value;
  uint64_t number = 0;
  {
    const MutexLock lock(mutex_);
    value = value_;
    number = number_;
  }
  log_.set_pause(value, [self = shared_from_this(), number](const RemoteAnswer& answer) {
    self->on_answer(answer, number);
  });
}

void PauseWish::on_answer(const RemoteAnswer& answer, uint64_t number) {
  const bool heard = is_heard(answer);
  bool gives_up = false;
  bool ends = false;
  {
    const MutexLock lock(mutex_);
    gives_up = !heard && (answer.outcome == RemoteOutcome::kClosed || now_ms_() >= give_up_ms_);
    is_out_ = !gives_up && !(heard && number == number_);
    ends = value_.empty();
    if (!is_out_ && !gives_up) return;
  }
  if (!gives_up) return send();
  if (sink_) {
    sink_(LogLevel::kWarning, std::string("the group was perhaps not ") +
                                  (ends ? "resumed" : "paused") + ": " +
                                  no_answer(answer).message());
  }
}

}  // namespace sluice
