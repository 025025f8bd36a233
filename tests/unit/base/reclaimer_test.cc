#include "engine/base/reclaimer.h"

#include <atomic>
#include <thread>
#include <vector>

#include "tests/support/test.h"

namespace sluice {

namespace {

std::atomic<int> g_alive{0};
std::atomic<bool> g_freed_elsewhere{false};
std::thread::id g_owner;

struct Object {
  Object() { ++g_alive; }
  ~Object() {
    --g_alive;
    g_freed_elsewhere = std::this_thread::get_id() != g_owner;
  }
};

std::vector<Retired> several(int count) {
  std::vector<Retired> retired;
  for (int i = 0; i < count; ++i) retired.push_back(Retired::of(new Object()));
  return retired;
}

}  // namespace

TEST_CASE("what it has taken is freed by a thread of its own") {
  g_owner = std::this_thread::get_id();
  Reclaimer reclaimer;
  for (int round = 1; round <= 50; ++round) {
    std::vector<Retired> retired = several(10);
    reclaimer.take(retired);
    CHECK(retired.empty());
    reclaimer.wait();
    CHECK(g_alive == 0);
    CHECK(reclaimer.pending() == 0);
    CHECK(reclaimer.freed() == static_cast<uint64_t>(round) * 10);
  }
  CHECK(g_freed_elsewhere);
}

TEST_CASE("at its end nothing is left, and without work there is nothing to wait for") {
  {
    Reclaimer idle;
    idle.wait();
  }
  {
    Reclaimer reclaimer;
    std::vector<Retired> retired = several(1000);
    reclaimer.take(retired);
  }
  CHECK(g_alive == 0);
}

}  // namespace sluice
