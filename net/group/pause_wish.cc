#include "net/group/pause_wish.h"

#include <algorithm>
#include <string>

namespace sluice {

void PauseWish::put(PauseValue value) {
  {
    const MutexLock lock(mutex_);
    value.number = std::max(value.number, value_.number + 1);
    value_ = std::move(value);
    give_up_ms_ = now_ms_() + kPatienceMs;
    if (std::exchange(is_out_, true)) return;
  }
  send();
}

void PauseWish::send() {
  PauseValue value;
  {
    const MutexLock lock(mutex_);
    value = value_;
  }
  log_.set_pause(encode_pause(value),
                 [self = shared_from_this(), number = value.number](const RemoteAnswer& answer) {
                   self->on_answer(answer, number);
                 });
}

void PauseWish::on_answer(const RemoteAnswer& answer, uint64_t number) {
  const bool heard = is_heard(answer);
  bool gives_up = false;
  bool goes_on = false;
  bool ends = false;
  {
    const MutexLock lock(mutex_);
    gives_up = !heard && (answer.outcome == RemoteOutcome::kClosed || now_ms_() >= give_up_ms_);
    goes_on = is_out_ = !gives_up && !(heard && number == value_.number);
    ends = value_.until_wall_ms == 0;
  }
  if (goes_on) return send();
  const bool conflicts = answer.outcome == RemoteOutcome::kConflict;
  if (!sink_ || (heard && !conflicts)) return;
  const std::string what = ends ? "resumed: " : "paused: ";
  sink_(LogLevel::kWarning,
        conflicts ? "the group was not " + what + "what another node has asked for is newer"
                  : "the group was perhaps not " + what + no_answer(answer).message());
}

}  // namespace sluice
