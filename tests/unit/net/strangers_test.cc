// Which connection is closed when all places are taken, and that there is one for each new
// connection.
#include "net/io/strangers.h"
#include "net/process/clocks.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "engine/commands/complete_engine.h"
#include "net/io/io_thread.h"
#include "net/io/server_state.h"
#include "tests/support/quiet_server.h"
#include "tests/support/test.h"

namespace sluice {
namespace {

constexpr uint64_t kLimit = 20;

struct Connection {
  std::atomic<uint64_t>& connected;
  int64_t stranger_since_ms = 0;
  bool open = true;

  void close() {
    open = false;
    --connected;
  }
};

// One I/O thread that never starts: its posted tasks run when the test runs them.
struct Door {
  test::QuietServer port;
  CompleteEngine engine{port, 7};
  ServerState state;
  std::unique_ptr<IoThread> thread;
  std::unique_ptr<Strangers<Connection>> strangers;
  std::vector<std::unique_ptr<Connection>> all;
  std::atomic<uint64_t> connected{0};

  Door() {
    state.engine = &engine;
    thread = std::make_unique<IoThread>(state, 0, false);
    strangers = std::make_unique<Strangers<Connection>>(*thread);
  }
  // The same condition as in net/server/connection_limit.cc.
  bool comes_in() {
    if (connected >= kLimit && !make_room<Connection>({strangers.get()}, connected, kLimit)) {
      return false;
    }
    all.push_back(std::make_unique<Connection>(connected));
    // Ages are compared in milliseconds, so wait for the next one.
    for (const int64_t before_ms = Clocks::steady_ms(); Clocks::steady_ms() == before_ms;) {
      std::this_thread::yield();
    }
    strangers->add(*all.back());
    ++connected;
    return true;
  }
  void authenticate_all() {
    for (const auto& one : all) strangers->remove(*one);
  }
  void run_tasks() { thread->tasks().run_all(); }
};

TEST_CASE("a further connection comes in for one that gives way") {
  Door door;
  for (uint64_t i = 0; i < kLimit + 3; ++i) CHECK(door.comes_in());
  CHECK(door.connected == kLimit + 3);
  door.run_tasks();
  CHECK(door.connected == kLimit);
  for (size_t i = 0; i < door.all.size(); ++i) CHECK(door.all[i]->open == (i >= 3));
}

TEST_CASE("who authenticates instead of giving way is made up for") {
  Door door;
  for (uint64_t i = 0; i < kLimit + 2; ++i) CHECK(door.comes_in());
  door.authenticate_all();
  door.run_tasks();
  REQUIRE(door.connected == kLimit + 2);  // there was no stranger left to close
  CHECK(!door.comes_in());

  // Further strangers take no further place; each that is refused gives one back.
  door.strangers->add(*door.all[0]);
  door.strangers->add(*door.all[1]);
  door.strangers->add(*door.all[2]);
  for (uint64_t left = kLimit + 2; left > kLimit; --left) {
    CHECK(!door.comes_in());
    CHECK(door.connected == left);
    door.run_tasks();
    CHECK(door.connected == left - 1);
  }
  CHECK(door.comes_in());
  door.run_tasks();
  CHECK(door.connected == kLimit);
}

TEST_CASE("however many authenticate, only so many come in above the limit") {
  Door door;
  for (uint64_t i = 0; i < kLimit; ++i) CHECK(door.comes_in());
  for (int round = 0; round < 100; ++round) {
    // The newest is the only stranger, and authenticates as soon as it is asked to close.
    door.authenticate_all();
    door.strangers->add(*door.all.back());
    door.comes_in();
    door.authenticate_all();
    door.run_tasks();
    CHECK(door.connected <= kLimit + 1);
  }
}

}  // namespace
}  // namespace sluice
