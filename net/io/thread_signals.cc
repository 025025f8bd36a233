#include "net/io/thread_signals.h"

#include "net/io/io_thread.h"
#include "net/io/poller.h"

namespace sluice {

void ThreadSignals::raise(Signal what) {
  // The first one wakes. The own thread looks at the signals before it waits, so it needs no
  // waking.
  const bool first = signals_.fetch_or(what, std::memory_order_acq_rel) == 0;
  if (first && IoThread::current() != &owner_) poller_.wake();
}

}  // namespace sluice
