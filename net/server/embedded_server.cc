#include "net/embedded_server.h"

#include "net/config/config.h"
#include "net/server/server.h"

namespace sluice {

EmbeddedServer::EmbeddedServer() = default;
EmbeddedServer::~EmbeddedServer() { stop(); }

std::string EmbeddedServer::start(const EmbeddedOptions& options) {
  if (running()) return "the server is already running";
  std::vector<std::string> arguments = {"--bind",       "127.0.0.1", "--port",     "auto",
                                        "--http-port",  "0",         "--loglevel", "warning",
                                        "--io-threads", "1"};
  if (options.directory.empty()) {
    arguments.insert(arguments.end(),
                     {"--appendonly", "no", "--save", "", "--loglevel", "nothing"});
  } else {
    arguments.insert(arguments.end(), {"--dir", options.directory});
  }
  for (const auto& [name, value] : options.directives) {
    arguments.push_back("--" + name);
    arguments.push_back(value);
  }
  config_ = std::make_unique<Config>();
  if (const auto error = config_->apply_arguments(arguments)) return error->text();
  server_ = std::make_unique<Server>(*config_);
  if (options.directory.empty()) server_->keep_nothing();
  std::string error = server_->start().message();
  if (error.empty() && !server_->wait_until_ready()) {
    server_->wait();
    error = server_->failure();
  }
  if (!error.empty()) server_.reset();
  return error;
}

uint16_t EmbeddedServer::port() const {
  return server_ == nullptr ? uint16_t{0} : server_->listeners().port();
}

int EmbeddedServer::stop() {
  if (server_ == nullptr) return 0;
  server_->request_stop();
  const int exit_code = server_->wait();
  server_.reset();
  config_.reset();
  return exit_code;
}

}  // namespace sluice
