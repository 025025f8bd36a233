// A server ends while clients connect all the time: each connection that it has accepted ends too.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "net/embedded_server.h"
#include "tests/support/test.h"

using namespace sluice;

namespace {

constexpr int kRounds = 12;
constexpr int kClients = 3;
constexpr timeval kPatience{5, 0};
// The kernel drops what asks for a connection while the listener's queue is full, and asks again
// for the client only after a second.
constexpr timeval kConnectPatience{0, 20'000};

// Connected, or -1, with the reason in errno: EINPROGRESS after kConnectPatience.
int connect_to(uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof(kPatience));
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &kConnectPatience, sizeof(kConnectPatience));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) return fd;
  const int why = errno;
  ::close(fd);
  errno = why;
  return -1;
}

// Whether the other side ends it, within kPatience.
bool ends(int fd) {
  char byte = '\n';
  // The kernel forgets a connection that no listener has accepted without a word to its client: an
  // answer to this tells.
  static_cast<void>(::send(fd, &byte, 1, MSG_NOSIGNAL));
  return ::recv(fd, &byte, 1, 0) == 0 || errno == ECONNRESET;
}

}  // namespace

TEST_CASE("no connection outlives a server that ends") {
  std::atomic<int> came{0};
  std::atomic<int> left_open{0};
  for (int round = 0; round < kRounds; ++round) {
    EmbeddedServer server;
    REQUIRE(server.start({.directives = {{"io-threads", "4"}}}).empty());
    std::vector<std::thread> clients;
    for (int i = 0; i < kClients; ++i) {
      clients.emplace_back([&, port = server.port()] {
        std::vector<int> mine;
        while (true) {
          const int fd = connect_to(port);
          if (fd < 0 && errno != EINPROGRESS) break;
          if (fd >= 0) mine.push_back(fd);
        }
        for (const int fd : mine) {
          if (left_open == 0 && !ends(fd)) ++left_open;
          ::close(fd);
        }
        came += static_cast<int>(mine.size());
      });
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    CHECK(server.stop() == 0);
    for (std::thread& client : clients) client.join();
  }
  CHECK(came > kRounds);
  CHECK(left_open == 0);
}
