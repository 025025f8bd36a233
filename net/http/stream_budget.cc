#include "net/http/stream_budget.h"

#include <algorithm>

namespace sluice {

namespace {

// Of the thread's time, whatever else there is to do.
constexpr int64_t kShareDivisor = 50;
// Of what it has nothing else to do in: a thread that waits now and then is not an idle one.
constexpr int64_t kIdleDivisor = 8;
// What may be saved up, so that a burst after a quiet time is told at once.
constexpr int64_t kMostUs = 20'000;
constexpr int64_t kRefillUs = 2'000;

}  // namespace

bool StreamBudget::allows() {
  const int64_t now = now_();
  // Less often, since fractions would be lost.
  if (now - filled_us_ < kRefillUs) return budget_us_ > 0;
  const int64_t idle = idle_();
  budget_us_ += (now - filled_us_) / kShareDivisor + (idle - idle_us_) / kIdleDivisor;
  budget_us_ = std::min(budget_us_, kMostUs);
  filled_us_ = now;
  idle_us_ = idle;
  return budget_us_ > 0;
}

}  // namespace sluice
