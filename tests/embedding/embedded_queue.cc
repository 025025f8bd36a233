// How another program tests against a real server without starting a process: two servers in this
// one, the first in memory, the second on a directory that outlives it. Plain sockets, so that
// nothing but Sluice is needed; a real test would use its Redis client here.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "net/embedded_server.h"

namespace {

void require(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "FAILED: %s\n", what.c_str());
  std::exit(1);
}

class Connection {
 public:
  explicit Connection(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval patience{5, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    require(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0,
            "connect");
  }
  ~Connection() { ::close(socket_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Sends one inline command and reads a reply that is known.
  void expect(const std::string& command, const std::string& reply) {
    const std::string line = command + "\r\n";
    require(::send(socket_, line.data(), line.size(), MSG_NOSIGNAL) ==
                static_cast<ssize_t>(line.size()),
            "send");
    std::string got;
    while (got.size() < reply.size()) {
      char piece[256];
      const ssize_t count = ::recv(socket_, piece, sizeof(piece), 0);
      if (count <= 0) break;
      got.append(piece, static_cast<size_t>(count));
    }
    require(got == reply, command + " answered " + got);
  }

 private:
  int socket_;
};

std::string start(sluice::EmbeddedServer& server, const sluice::EmbeddedOptions& options = {}) {
  const std::string error = server.start(options);
  require(error.empty(), "start: " + error);
  require(server.port() != 0, "a port");
  return error;
}

void a_queue_in_memory() {
  sluice::EmbeddedServer server;
  start(server);
  Connection client(server.port());
  client.expect("ZADD pending 2 b 1 a", ":2\r\n");
  client.expect("ZPOPMIN pending", "*2\r\n$1\r\na\r\n$1\r\n1\r\n");
  require(server.stop() == 0, "an orderly end");
  require(!server.running() && server.port() == 0, "nothing runs after stop");

  // The same object starts again, and memory was all it had.
  start(server);
  Connection again(server.port());
  again.expect("ZCARD pending", ":0\r\n");
}

void a_queue_on_a_directory() {
  std::string directory =
      (std::filesystem::temp_directory_path() / "sluice-embedding-XXXXXX").string();
  require(::mkdtemp(directory.data()) != nullptr, "a directory");
  const sluice::EmbeddedOptions options{.directory = directory};
  {
    sluice::EmbeddedServer server;
    start(server, options);
    Connection client(server.port());
    client.expect("SET job 1", "+OK\r\n");

    sluice::EmbeddedServer second;
    require(!second.start(options).empty(), "a second server on the directory is refused");

    // One in memory beside it, with a password.
    start(second, {.directives = {{"requirepass", "secret"}}});
    Connection stranger(second.port());
    stranger.expect("GET job", "-NOAUTH Authentication required.\r\n");
    stranger.expect("AUTH secret", "+OK\r\n");
    stranger.expect("GET job", "$-1\r\n");
  }
  {
    sluice::EmbeddedServer server;
    start(server, options);
    Connection client(server.port());
    client.expect("GET job", "$1\r\n1\r\n");
  }
  std::filesystem::remove_all(directory);
}

void a_bad_directive_is_an_error() {
  sluice::EmbeddedServer server;
  const std::string error = server.start({.directives = {{"no-such-directive", "1"}}});
  require(!error.empty(), "a bad directive is refused");
  require(!server.running(), "and nothing runs");
}

}  // namespace

int main() {
  a_queue_in_memory();
  a_queue_on_a_directory();
  a_bad_directive_is_an_error();
  std::puts("ok");
  return 0;
}
