#include "net/io/thread_signals.h"

#include "net/io/io_thread.h"

namespace sluice {

void ThreadSignals::raise(Signal what) {
  // The first signal wakes the thread. The own thread checks the signals before it waits, so it
  // needs no wake-up.
  const bool first = signals_.fetch_or(what, std::memory_order_acq_rel) == 0;
  if (first && IoThread::current() != &owner_) poller_.wake();
}

}  // namespace sluice
