// StreamBudget with a simulated clock: the share of time that event streams get.
#include "net/http/stream_budget.h"

#include <cstdint>

#include "tests/support/test.h"

namespace {

using sluice::StreamBudget;

// A thread that is idle for `idle_share` hundredths of its time, whatever its streams use.
struct Thread {
  int64_t now_us = 1'000'000;
  int64_t idle_us = 0;
  StreamBudget budget{[this] { return now_us; }, [this] { return idle_us; }};

  void pass(int64_t us, int64_t idle_share) {
    now_us += us;
    idle_us += us * idle_share / 100;
  }
  // The time used by streams that always have data to send, in parts of `part_us`; they ask again
  // after `retry_us`.
  int64_t taken(int64_t time_us, int64_t idle_share, int64_t part_us, int64_t retry_us = 1000) {
    int64_t taken_us = 0;
    for (const int64_t end_us = now_us + time_us; now_us < end_us;) {
      if (!budget.allows()) {
        pass(retry_us, idle_share);
        continue;
      }
      pass(part_us, 0);
      budget.spend(part_us);
      taken_us += part_us;
    }
    return taken_us;
  }
};

constexpr int64_t kSecond = 1'000'000;

TEST_CASE("of a thread that is never idle streams get a fiftieth") {
  for (const int64_t part_us : {20, 300, 3000}) {
    Thread thread;
    const int64_t taken_us = thread.taken(10 * kSecond, 0, part_us);
    CHECK(taken_us > 10 * kSecond / 50 * 95 / 100);
    CHECK(taken_us < 10 * kSecond / 50 * 105 / 100);
  }
}

TEST_CASE("of what nobody else wants they get an eighth besides") {
  Thread thread;
  // While the streams work the thread is not idle: of each second they use x, and (1 - x) / 2 is
  // idle.
  const double share = static_cast<double>(thread.taken(10 * kSecond, 50, 100)) / (10 * kSecond);
  const double expected = (1.0 / 50 + 0.5 / 8) / (1 + 0.5 / 8);
  CHECK(share > expected * 0.95);
  CHECK(share < expected * 1.05);
}

TEST_CASE("one that has taken too much waits until it is paid for") {
  Thread thread;
  thread.pass(kSecond, 0);
  REQUIRE(thread.budget.allows());
  thread.budget.spend(120'000);  // 20 ms were saved up: 100 ms are owed, five seconds of a fiftieth
  thread.pass(4'900'000, 0);
  CHECK_FALSE(thread.budget.allows());
  thread.pass(200'000, 0);
  CHECK(thread.budget.allows());
}

TEST_CASE("a quiet time saves up twenty milliseconds, however long it was") {
  Thread thread;
  thread.pass(1000 * kSecond, 100);
  REQUIRE(thread.budget.allows());
  thread.budget.spend(19'999);
  CHECK(thread.budget.allows());
  thread.budget.spend(1);
  CHECK_FALSE(thread.budget.allows());
}

TEST_CASE("a part that waits long, as for a script, is paid for within a second") {
  Thread thread;
  thread.pass(kSecond, 0);
  REQUIRE(thread.budget.allows());
  const StreamBudget::Begin begin = thread.budget.begin();
  thread.pass(10 * kSecond, 0);
  thread.budget.spend_since(begin);
  thread.pass(kSecond, 0);
  CHECK(thread.budget.allows());
}

TEST_CASE("asking often loses no fractions") {
  Thread often;
  Thread seldom;
  for (int i = 0; i < 100'000; ++i) {
    often.pass(10, 0);
    often.budget.allows();
  }
  seldom.pass(kSecond, 0);
  REQUIRE(seldom.budget.allows());
  REQUIRE(often.budget.allows());
  often.budget.spend(19'900);
  CHECK(often.budget.allows());
}

}  // namespace
