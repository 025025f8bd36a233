#include "net/io/asio_thread.h"

namespace sluice {

void AsioThread::start() {
  thread_ = Thread("sluice-asio", [this] { context_.run(); });
}

void AsioThread::stop() {
  context_.stop();
  if (thread_.joinable()) thread_.join();
}

}  // namespace sluice
