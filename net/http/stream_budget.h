// StreamBudget: how much of an I/O thread's time its streams of events may take: an eighth of what
// nobody else wants, and a fiftieth of all. Whoever watches a busy queue must not make it slow.
//
// A stream asks before each part, and says afterwards how long it took; who may not go on asks
// again a little later. One for each I/O thread, on which it is used.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

namespace sluice {

class StreamBudget {
 public:
  using Clock = std::function<int64_t()>;

  // Microseconds: of a steady clock, and for how long the thread has been idle in all.
  StreamBudget(Clock now_us, Clock idle_us)
      : now_(std::move(now_us)), idle_(std::move(idle_us)), filled_us_(now_()), idle_us_(idle_()) {}

  // Whether a stream may go on now.
  bool allows();
  void spend(int64_t used_us) { budget_us_ -= used_us; }

  int64_t now_us() const { return now_(); }

 private:
  const Clock now_;
  const Clock idle_;
  int64_t budget_us_ = 0;
  // When it was filled last, and how long the thread had been idle in all.
  int64_t filled_us_;
  int64_t idle_us_;
};

}  // namespace sluice
