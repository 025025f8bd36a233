// StreamBudget: how much of an I/O thread's time its streams of events may take: an eighth of what
// nobody else wants, and a fiftieth of all. Whoever watches a busy queue must not make it slow.
//
// A stream asks before each part, and says afterwards how long it took; who may not go on asks
// again a little later. One for each I/O thread, on which it is used.
#pragma once

#include <cstdint>

namespace sluice {

class IoThread;

class StreamBudget {
 public:
  explicit StreamBudget(const IoThread& thread) : thread_(thread) {}

  // Whether a stream may go on now.
  bool allows();
  void spend(int64_t used_us) { budget_us_ -= used_us; }

  // Microseconds of the steady clock.
  static int64_t now_us();

 private:
  const IoThread& thread_;
  int64_t budget_us_ = 0;
  // When it was filled last, and how long the thread had been idle in all.
  int64_t filled_us_ = 0;
  int64_t idle_us_ = 0;
};

}  // namespace sluice
