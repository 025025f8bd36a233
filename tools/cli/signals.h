// Waits for signals synchronously instead of using handlers, so that a program can end in order.
//
// Create one object, before any thread, so that all threads inherit the mask and signals arrive
// only here.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <initializer_list>

namespace sluice::cli {

class Signals {
 public:
  // From now on these signals only end a `wait`.
  explicit Signals(std::initializer_list<int> numbers);
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  enum class Event : unsigned char { kTimeout, kSignal, kInput };
  struct Woken {
    Event event = Event::kTimeout;
    int signal = 0;  // if kSignal
  };
  // Waits until a signal arrives, `input` is readable (-1: none), or the time has passed.
  Woken wait(std::chrono::milliseconds time, int input = -1);

 private:
  int descriptor_ = -1;
};

}  // namespace sluice::cli
