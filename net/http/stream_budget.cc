#include "net/http/stream_budget.h"

#include <algorithm>

namespace sluice {

namespace {

// Fraction of the thread's total time.
constexpr int64_t kShareDivisor = 50;
// Fraction of its idle time: a thread that waits now and then is not idle.
constexpr int64_t kIdleDivisor = 8;
// Maximum that can accumulate, so that a burst after a quiet time is sent at once.
constexpr int64_t kMostUs = 20'000;
constexpr int64_t kRefillUs = 2'000;
// What a wait counts at most.
constexpr int64_t kMostWaitUs = 20'000;

}  // namespace

void StreamBudget::spend_since(const Begin& begin) {
  const Begin end = this->begin();
  spend(std::min(end.now_us - begin.now_us, end.cpu_us - begin.cpu_us + kMostWaitUs));
}

bool StreamBudget::allows() {
  const int64_t now = now_();
  // Not more often, because fractions would be lost.
  if (now - filled_us_ < kRefillUs) return budget_us_ > 0;
  const int64_t idle = idle_();
  budget_us_ += (now - filled_us_) / kShareDivisor + (idle - idle_us_) / kIdleDivisor;
  budget_us_ = std::min(budget_us_, kMostUs);
  filled_us_ = now;
  idle_us_ = idle;
  return budget_us_ > 0;
}

}  // namespace sluice
