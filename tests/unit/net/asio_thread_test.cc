// Asio's objects of an I/O thread: where their handlers run, and when.
#include "net/io/asio_thread.h"

#include <future>
#include <memory>
#include <optional>

#include "engine/commands/complete_engine.h"
#include "net/io/asio_types.h"
#include "net/io/io_thread.h"
#include "net/io/server_state.h"
#include "tests/support/quiet_server.h"
#include "tests/support/test.h"

namespace sluice {
namespace {

// Holds something of an I/O thread, and frees it when the thread ends.
class Holder final : public IoThreadGuest {
 public:
  explicit Holder(std::optional<SteadyTimer>& timer) : timer_(timer) {}
  void begin_stop() override {}
  void close_all() override { timer_->cancel(); }

 private:
  std::optional<SteadyTimer>& timer_;
};

struct Threads {
  test::QuietServer port;
  CompleteEngine engine{port, 7};
  ServerState state;
  std::unique_ptr<IoThread> thread;

  Threads() {
    state.engine = &engine;
    thread = std::make_unique<IoThread>(state, 0, false);
  }
  void start() {
    state.asio.start();
    thread->start();
  }
  void end() {
    thread->stop();
    thread->join();
    state.asio.stop();
  }
};

TEST_CASE("a handler runs on the I/O thread of its object") {
  Threads threads;
  std::optional<SteadyTimer> timer;
  std::promise<IoThread*> ran_on;
  threads.start();
  threads.thread->post([&] {
    timer.emplace(threads.thread->executor(), std::chrono::milliseconds(1));
    timer->async_wait([&](const error_code&) { ran_on.set_value(IoThread::current()); });
  });
  CHECK(ran_on.get_future().get() == threads.thread.get());
  threads.end();
}

TEST_CASE("a thread ends after the handlers of what its end has cancelled") {
  Threads threads;
  std::optional<SteadyTimer> timer;
  threads.thread->add_guest(std::make_unique<Holder>(timer));
  auto held = std::make_shared<int>(0);
  int steps = 0;
  const auto wait_again = [&](const error_code& error) {
    CHECK(error == asio::error::operation_aborted);
    CHECK(IoThread::current() == threads.thread.get());
    ++steps;
    timer->async_wait([&, kept = held](const error_code& late) {
      CHECK(late == asio::error::operation_aborted);
      ++steps;
    });
    timer->cancel();
  };
  timer.emplace(threads.thread->executor(), std::chrono::hours(1));
  timer->async_wait([wait_again, kept = held](const error_code& error) { wait_again(error); });
  threads.start();
  threads.end();
  CHECK(steps == 2);
  CHECK(held.use_count() == 1);
}

}  // namespace
}  // namespace sluice
