// A server inside a program, with the lines that docs/operating.md has of it.
#include <sluice/net/embedded_server.h>

#include <string>

int main() {
  sluice::EmbeddedServer server;
  const std::string error = server.start();
  if (!error.empty() || server.port() == 0) return 1;
  return server.stop();
}
