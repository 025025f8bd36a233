// StreamBudget: limits how much of an I/O thread's time its event streams may use: an eighth of its
// idle time, and a fiftieth of all time. Watching a busy queue must not slow it down.
//
// A stream asks before each part and reports afterwards how long it took, of which a wait counts up
// to 20 ms: one for the disk holds the thread, and is repeated; one for a script may take seconds.
// A stream that is not allowed to continue asks again a little later. One per I/O thread, used on
// that thread.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "engine/base/thread.h"

namespace sluice {

class StreamBudget {
 public:
  using Clock = std::function<int64_t()>;

  // In microseconds: a steady clock, and the thread's total idle time.
  StreamBudget(Clock now_us, Clock idle_us)
      : now_(std::move(now_us)), idle_(std::move(idle_us)), filled_us_(now_()), idle_us_(idle_()) {}

  // Whether a stream may continue now.
  bool allows();
  void spend(int64_t used_us) { budget_us_ -= used_us; }
  // When a part began, by both clocks.
  struct Begin {
    int64_t now_us;
    int64_t cpu_us;
  };
  Begin begin() const { return {now_(), Thread::cpu_us()}; }
  void spend_since(const Begin& begin);

 private:
  const Clock now_;
  const Clock idle_;
  int64_t budget_us_ = 0;
  // When the budget was last filled, and the thread's total idle time then.
  int64_t filled_us_;
  int64_t idle_us_;
};

}  // namespace sluice
