#include "net/server/traffic_stats.h"

#include <algorithm>

#include "engine/execution/execution.h"
#include "net/process/clocks.h"

namespace sluice {

uint64_t TrafficStats::sum(std::atomic<uint64_t> IoThread::Counters::*counter) const {
  uint64_t sum = 0;
  for (const auto& thread : shared_.io_threads) {
    sum += (thread->counters().*counter).load(std::memory_order_relaxed);
  }
  return sum;
}

TrafficStats::Totals TrafficStats::totals_ever() const {
  Totals totals;
  shared_.engine->for_each_execution([&](Execution& execution) {
    totals.operations += execution.statistics.commands_processed.load(std::memory_order_relaxed);
  });
  totals.input_bytes = sum(&IoThread::Counters::input_bytes);
  totals.output_bytes = sum(&IoThread::Counters::output_bytes);
  totals.at_ms = Clocks::steady_ms();
  return totals;
}

TrafficStats::Totals TrafficStats::totals() const {
  Totals now = totals_ever();
  MutexLock lock(mutex_);
  now.operations -= reset_.operations;
  now.input_bytes -= reset_.input_bytes;
  now.output_bytes -= reset_.output_bytes;
  return now;
}

void TrafficStats::reset() {
  const Totals now = totals_ever();
  MutexLock lock(mutex_);
  reset_ = now;
}

void TrafficStats::sample() {
  const Totals now = totals_ever();
  const auto elapsed_ms = static_cast<uint64_t>(std::max<int64_t>(now.at_ms - sampled_.at_ms, 1));
  const auto rate = [&](uint64_t after, uint64_t before) {
    return (after - before) * 1000 / elapsed_ms;
  };
  rates_.operations.store(rate(now.operations, sampled_.operations));
  rates_.input_bytes.store(rate(now.input_bytes, sampled_.input_bytes));
  rates_.output_bytes.store(rate(now.output_bytes, sampled_.output_bytes));
  sampled_ = now;
}

}  // namespace sluice
