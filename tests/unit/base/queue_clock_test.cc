// Queue time: its start, how it follows the wall clock, and that it never goes back.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include "engine/base/queue_clock.h"
#include "engine/base/times.h"
#include "tests/support/test.h"

namespace {

using sluice::QueueClock;
using sluice::Times;

constexpr int64_t kNowMs = 1'700'000'000'000;
constexpr int64_t kHourMs = 3'600'000;
constexpr int64_t kYearMs = 31'536'000'000;

// A machine whose clocks the test sets, and a server on it that reads them like
// net/process/clocks.cc.
struct Machine {
  int64_t wall_us = kNowMs * 1000;
  int64_t steady_us = 50'000'000;
  int64_t boot_us = 50'000'000;
  QueueClock clock;

  explicit Machine(int64_t journaled_ms = 0, int64_t wall_ms = kNowMs) : wall_us(wall_ms * 1000) {
    clock.outgrow(journaled_ms);
    clock.start({wall_us, steady_us, boot_us});
  }
  void pass(int64_t ms, double wall_rate = 1) {
    steady_us += ms * 1000;
    boot_us += ms * 1000;
    wall_us += static_cast<int64_t>(static_cast<double>(ms * 1000) * wall_rate);
  }
  void step(int64_t ms) { wall_us += ms * 1000; }
  void sleep(int64_t ms) {
    boot_us += ms * 1000;
    wall_us += ms * 1000;
  }
  Times read() {
    Times now{wall_us / 1000, clock.now_ms(steady_us), steady_us / 1000, clock.ahead_ms()};
    if (clock.must_follow(steady_us, now.wall_ms, now.queue_ms)) {
      now.ahead_ms = clock.follow({wall_us, steady_us, boot_us});
      now.queue_ms = clock.now_ms(steady_us);
    }
    return now;
  }
};

TEST_CASE("queue time begins at the wall clock, or after the greatest time in the journal") {
  CHECK(Machine().read().queue_ms == kNowMs);
  CHECK(Machine(kNowMs - 1).read().queue_ms == kNowMs);
  // A time in the journal is not used again.
  CHECK(Machine(kNowMs).read().queue_ms == kNowMs + 1);
  Machine ahead(kNowMs + kYearMs);
  CHECK(ahead.read().queue_ms == kNowMs + kYearMs + 1);
  CHECK(ahead.read().ahead_ms == kYearMs + 1);
  CHECK(Machine(0, 0).read().queue_ms == 1);
}

TEST_CASE("a thread that has read the steady clock earlier is told the time of the later one") {
  Machine machine;
  const int64_t later_ms = machine.clock.now_ms(machine.steady_us + 5000);
  CHECK(later_ms == kNowMs + 5);
  CHECK(machine.clock.now_ms(machine.steady_us) == later_ms);
}

TEST_CASE("a step of the wall clock is no step of queue time, and is its difference at once") {
  for (const int64_t step_ms : {int64_t{5000}, kHourMs, kYearMs, int64_t{-5000}, -kHourMs, -kYearMs,
                                -kNowMs, 500 * kYearMs}) {
    Machine machine;
    const int64_t before_ms = machine.read().queue_ms;
    machine.step(step_ms);
    CHECK(machine.read().queue_ms - before_ms <= 1);
    CHECK(machine.read().ahead_ms == -step_ms);
    machine.pass(1000);
    const int64_t passed_ms = machine.read().queue_ms - before_ms;
    CHECK(passed_ms >= 999);
    CHECK(passed_ms <= 1001);
    // And back.
    machine.step(-step_ms);
    CHECK(std::abs(machine.read().ahead_ms) <= 1);
    CHECK(machine.read().queue_ms - before_ms == passed_ms);
  }
}

TEST_CASE("queue time follows the wall clock by 0.1 % of the time that passes, and no further") {
  for (const int64_t step_ms : {3000, -3000}) {
    Machine machine;
    machine.step(step_ms);
    machine.read();
    int64_t before_ms = machine.read().queue_ms;
    for (int second = 1; second <= 4000; ++second) {
      machine.pass(1000);
      const Times now = machine.read();
      CHECK(now.queue_ms - before_ms >= 998);
      CHECK(now.queue_ms - before_ms <= 1002);
      before_ms = now.queue_ms;
      const int64_t left_ms = std::max(0, 3000 - second);
      if (left_ms > 10) CHECK(std::abs(std::abs(now.ahead_ms) - left_ms) <= 5);
    }
    CHECK(machine.read().ahead_ms == 0);
    CHECK(std::abs(machine.read().queue_ms - machine.wall_us / 1000) <= 1);
  }
}

TEST_CASE("a wall clock of twice or half the rate takes queue time along by 0.1 %") {
  for (const double rate : {0.5, 2.0}) {
    Machine machine;
    for (int i = 0; i < 60'000; ++i) {
      machine.pass(10, rate);
      machine.read();
    }
    const int64_t passed_ms = machine.read().queue_ms - kNowMs;
    CHECK(passed_ms >= 599'400 - 2);
    CHECK(passed_ms <= 600'600 + 2);
    CHECK(machine.read().queue_ms - machine.read().ahead_ms - machine.wall_us / 1000 <= 21);
  }
}

TEST_CASE("queue time goes on while the machine sleeps, and after a day without a request") {
  Machine machine;
  machine.sleep(kHourMs);
  machine.pass(100);
  CHECK(machine.read().queue_ms == kNowMs + kHourMs + 100);
  CHECK(machine.read().ahead_ms == 0);
  machine.step(-kYearMs);
  machine.pass(24 * kHourMs);
  const int64_t at_first_ms = machine.read().queue_ms;
  CHECK(at_first_ms >= kNowMs + 25 * kHourMs);
  // Catching up over a long time does not make it stand still.
  machine.pass(3);
  CHECK(machine.read().queue_ms > at_first_ms);
}

TEST_CASE("a sleep of the machine counts once, and one before the start counts not at all") {
  Machine machine;
  machine.sleep(kHourMs);
  for (int64_t passed_ms = 100; passed_ms <= 1000; passed_ms += 100) {
    machine.pass(100);
    CHECK(machine.read().queue_ms == kNowMs + kHourMs + passed_ms);
  }
  QueueClock clock;
  clock.start({kNowMs * 1000, 50'000'000, 50'000'000 + kHourMs * 1000});
  CHECK(clock.now_ms(50'000'000) == kNowMs);
}

TEST_CASE("small differences are none, so that times that are shown do not flicker") {
  Machine machine;
  std::mt19937_64 random(5);
  for (int i = 0; i < 2000; ++i) {
    machine.pass(50);
    machine.wall_us += static_cast<int64_t>(random() % 9000) - 4500;
    CHECK(machine.read().ahead_ms == 0);
    machine.wall_us = kNowMs * 1000 + machine.steady_us - 50'000'000;
  }
}

TEST_CASE("no thread is told less than another before it, whatever the wall clock does") {
  QueueClock clock;
  clock.start({kNowMs * 1000, 0, 0});
  std::atomic<int64_t> steady_us{0};
  std::atomic<int64_t> told_ms{0};
  std::atomic<bool> went_back{false};
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937_64 random(seed);
      for (int i = 0; i < 200'000; ++i) {
        const int64_t before_ms = told_ms.load();
        const int64_t now_us = steady_us.fetch_add(static_cast<int64_t>(random() % 40));
        const int64_t ms = clock.now_ms(now_us);
        if (ms < before_ms) went_back = true;
        int64_t told = before_ms;
        while (told < ms && !told_ms.compare_exchange_weak(told, ms)) {
        }
        if (random() % 16 != 0) continue;
        const auto wall_us = static_cast<int64_t>(random() % (8'000'000'000'000'000));
        clock.follow({wall_us, now_us, now_us});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_FALSE(went_back.load());
  const int64_t passed_ms = clock.latest_ms() - kNowMs;
  CHECK(std::abs(passed_ms - steady_us.load() / 1000) <= steady_us.load() / 1'000'000 + 2);
}

TEST_CASE("times are shown and given as the wall clock has them") {
  const Times ahead{kNowMs, kNowMs + kHourMs, 0, kHourMs};
  CHECK(ahead.shown_ms(kNowMs + kHourMs) == kNowMs);
  CHECK(ahead.queue_time_of(kNowMs + 5) == kNowMs + kHourMs + 5);
  CHECK(ahead.shown_ms(5) == 0);
  const Times behind{kNowMs, kNowMs - kYearMs, 0, -kYearMs};
  CHECK(behind.shown_ms(kNowMs - kYearMs) == kNowMs);
  CHECK(behind.queue_time_of(5) == 0);
  // The largest AT fits into a record even if queue time is ahead.
  constexpr int64_t kMaxAt = (int64_t{1} << 53) - 1;
  CHECK(ahead.queue_time_of(kMaxAt) == int64_t{1} << 53);
}

}  // namespace
