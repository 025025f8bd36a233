// An I/O thread: where the handlers of its Asio objects run, and its end, also while connections
// arrive.
#include "net/io/io_thread.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <future>
#include <memory>
#include <optional>

#include "engine/commands/complete_engine.h"
#include "net/io/asio_types.h"
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

TEST_CASE("a connection that arrives in a thread's last turn is closed") {
  Threads threads;
  IoThread& thread = *threads.thread;
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
  REQUIRE(::fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
  // More than fits into a turn, so that the connection is still to be taken when the turns end.
  for (int i = 0; i < 1000; ++i) thread.post([] {});
  threads.state.connected_clients = 1;
  thread.adopt(ends[0], {});
  thread.stop();
  threads.start();
  threads.end();
  CHECK(thread.sessions().count() == 0);
  CHECK(threads.state.connected_clients == 0);
  char byte = 0;
  CHECK(::read(ends[1], &byte, 1) == 0);
  ::close(ends[1]);
}

}  // namespace
}  // namespace sluice
