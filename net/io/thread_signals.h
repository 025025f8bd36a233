// ThreadSignals: notifications from other threads to an I/O thread, as bits, with one wake-up for
// all of them until the thread has taken them. Any thread, unless stated otherwise.
#pragma once

#include <atomic>
#include <cstdint>

namespace sluice {

class IoThread;
class Poller;

class ThreadSignals {
 public:
  enum Signal : uint32_t {
    kMailWaits = 1U << 0,
    kDurableMoved = 1U << 1,
    kTaskPosted = 1U << 2,
    kStop = 1U << 3,
  };

  ThreadSignals(const IoThread& owner, Poller& poller) : owner_(owner), poller_(poller) {}

  void raise(Signal what);
  bool any() const { return signals_.load(std::memory_order_acquire) != 0; }
  // The own thread: the signals raised since the last call; signals it has handled itself.
  uint32_t take() { return any() ? signals_.exchange(0, std::memory_order_acq_rel) : 0; }
  void drop(Signal what) { signals_.fetch_and(~uint32_t{what}, std::memory_order_acq_rel); }

 private:
  const IoThread& owner_;
  Poller& poller_;
  std::atomic<uint32_t> signals_{0};
};

}  // namespace sluice
