// Signals as something to wait for, so that a program ends in order: no handlers.
//
// One for a program, made before any thread, which inherit the mask: so signals come here only.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <initializer_list>

namespace sluice::cli {

class Signals {
 public:
  // From now on these signals do nothing but end a `wait`.
  explicit Signals(std::initializer_list<int> numbers);
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  enum class Event : unsigned char { kTimeout, kSignal, kInput };
  struct Woken {
    Event event = Event::kTimeout;
    int signal = 0;  // kSignal
  };
  // Until one of them comes, `input` (-1: none) can be read, or the time has passed.
  Woken wait(std::chrono::milliseconds time, int input = -1);

 private:
  int descriptor_ = -1;
};

}  // namespace sluice::cli
