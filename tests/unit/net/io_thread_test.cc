// The end of an I/O thread while connections arrive.
#include "net/io/io_thread.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "engine/commands/complete_engine.h"
#include "net/io/server_state.h"
#include "tests/support/quiet_server.h"
#include "tests/support/test.h"

namespace sluice {
namespace {

TEST_CASE("a connection that arrives in a thread's last turn is closed") {
  test::QuietServer port;
  CompleteEngine engine(port, 7);
  ServerState state;
  state.engine = &engine;
  IoThread thread(state, 0, false);
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
  REQUIRE(::fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
  // More than fits into a turn, so that the connection is still to be taken when the turns end.
  for (int i = 0; i < 1000; ++i) thread.post([] {});
  state.connected_clients = 1;
  thread.adopt(ends[0], {});
  thread.stop();
  state.asio.start();
  thread.start();
  thread.join();
  state.asio.stop();
  CHECK(thread.sessions().count() == 0);
  CHECK(state.connected_clients == 0);
  char byte = 0;
  CHECK(::read(ends[1], &byte, 1) == 0);
  ::close(ends[1]);
}

}  // namespace
}  // namespace sluice
