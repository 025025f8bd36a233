// EmbeddedServer: a whole server inside another program, for its tests: on a free port of the
// loopback interface, in memory or on a directory. Link `sluice::server`.
//
//   sluice::EmbeddedServer server;                       // in memory
//   std::string error = server.start();                  // empty: it serves
//   connect_to("127.0.0.1", server.port());
//   server.stop();                                       // or the destructor
//
// With a directory everything is kept as by the program: start() on the same directory again finds
// it. Several servers may run in one process, each with its own data.
//
// Threads: start and stop by one thread; port() by any after start(). The program's signals are
// left alone; its SIGPIPE too, since the server's sockets never raise it. Logging goes to spdlog's
// default logger of the process, from `warning` up unless `loglevel` is among the directives.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sluice {

class Config;
class Server;

// Each member has a default, so that naming some of them compiles without a warning:
// start({.directory = "data"}).
struct EmbeddedOptions {
  // Where the data is kept; empty: in memory only, gone at stop().
  std::string directory{};
  // Directives as in sluice.conf, such as {"requirepass", "secret"}; they win over what is set
  // here.
  std::vector<std::pair<std::string, std::string>> directives{};
};

class EmbeddedServer {
 public:
  EmbeddedServer();
  // Stops it.
  ~EmbeddedServer();
  EmbeddedServer(const EmbeddedServer&) = delete;
  EmbeddedServer& operator=(const EmbeddedServer&) = delete;

  // Returns when clients can connect. Empty, or why it does not run.
  std::string start(const EmbeddedOptions& options = {});
  bool running() const { return server_ != nullptr; }
  // On 127.0.0.1; 0 when it does not run.
  uint16_t port() const;
  // Finishes the work in hand, closes the connections, writes what has to be written. The exit code
  // that the program would have: 0, or 75 if the disk failed. Does nothing twice.
  int stop();

 private:
  std::unique_ptr<Config> config_;
  std::unique_ptr<Server> server_;
};

}  // namespace sluice
