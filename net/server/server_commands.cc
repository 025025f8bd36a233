// Server as ServerPort: what commands ask of the process, INFO apart.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "engine/access/acl.h"
#include "engine/script/script_engine.h"
#include "net/io/session.h"
#include "net/process/clocks.h"
#include "net/process/memory_use.h"
#include "net/process/replace_file.h"
#include "net/server/server.h"

namespace sluice {

std::vector<std::pair<std::string, std::string>> Server::config_get(
    const std::vector<std::string>& patterns) {
  return config_.get(patterns);
}

std::string Server::config_set(const std::vector<std::pair<std::string, std::string>>& parameters) {
  return config_.set(parameters);
}

bool Server::is_secret(Bytes parameter) const {
  const Directive* directive = find_directive(parameter);
  return directive != nullptr && directive->secret;
}

std::string Server::config_rewrite() {
  const std::shared_ptr<const Settings> settings = config_.settings();
  // Users of an ACL file are kept there; the others' lines are brought up to date.
  if (!settings->aclfile.empty()) return config_.rewrite(std::nullopt);
  // The default user gets a line only if requirepass does not say it all: a line would take the
  // place of whatever somebody writes as requirepass later.
  Acl plain;
  plain.set_default_password(settings->requirepass);
  const std::string plain_line = Acl::line_of(*plain.find("default"));
  std::vector<std::string> lines;
  for (const auto& user : engine_->acl().users()) {
    std::string line = Acl::line_of(*user);
    if (line != plain_line) lines.push_back(std::move(line));
  }
  return config_.rewrite(lines);
}

namespace {

constexpr const char* kNoAclFile =
    "ERR This Redis instance is not configured to use an ACL file. You may want to specify users "
    "via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis "
    "configuration file set) in order to store users in the Redis configuration.";

}  // namespace

std::string Server::load_users() {
  const std::shared_ptr<const Settings> settings = config_.settings();
  if (settings->aclfile.empty()) return kNoAclFile;
  const std::string error = load_users_file(settings->aclfile);
  return error.empty() ? error : "ERR " + error;
}

std::string Server::save_users() {
  const std::shared_ptr<const Settings> settings = config_.settings();
  if (settings->aclfile.empty()) return kNoAclFile;
  const std::string error = replace_file(settings->aclfile, engine_->acl().text());
  if (error.empty()) return error;
  spdlog::warn("The ACL file {} cannot be written: {}", settings->aclfile, error);
  return "ERR There was an error trying to save the ACLs. Please check the server logs for more "
         "information";
}

void Server::reset_stats() {
  const Totals now = totals();
  MutexLock lock(stats_mutex_);
  reset_totals_ = now;
  state_.connections_received.store(0);
  state_.connections_rejected.store(0);
  state_.query_buffer_disconnections.store(0);
  state_.output_buffer_disconnections.store(0);
  if (tls_ != nullptr) tls_->reset_stats();
}

// --- Connections ---

std::vector<ClientFacts> Server::clients(const Client& asking) {
  const int64_t now_ms = Clocks::steady_ms();
  std::vector<ClientFacts> all;
  for (const auto& thread : io_threads_) {
    for (const std::shared_ptr<SessionPort>& port : thread->sessions().ports()) {
      if (port->killed()) continue;
      // Others see it as it was after its last batch; it sees itself as it is.
      if (port->id() == asking.id) port->session()->publish();
      ClientFacts facts = port->facts(now_ms);
      if (facts.id == asking.id) SessionPort::describe(asking, facts);
      all.push_back(std::move(facts));
    }
  }
  std::sort(all.begin(), all.end(),
            [](const ClientFacts& a, const ClientFacts& b) { return a.id < b.id; });
  return all;
}

ClientFacts Server::client(const Client& asking) {
  ClientFacts facts;
  facts.id = asking.id;
  facts.address = asking.address;
  // A connection that is closing has no port any more, and one of the HTTP side has no session.
  if (const auto* port = dynamic_cast<const SessionPort*>(asking.port.get())) {
    facts = port->facts(Clocks::steady_ms());
  }
  SessionPort::describe(asking, facts);
  return facts;
}

size_t Server::kill_clients(Client& asking,
                            const std::function<bool(const ClientFacts&)>& matches) {
  const int64_t now_ms = Clocks::steady_ms();
  size_t killed = 0;
  for (const auto& thread : io_threads_) {
    for (const std::shared_ptr<SessionPort>& port : thread->sessions().ports()) {
      if (port->killed()) continue;
      ClientFacts facts = port->facts(now_ms);
      const bool self = facts.id == asking.id;
      if (self) SessionPort::describe(asking, facts);
      if (!matches(facts)) continue;
      ++killed;
      if (self) {
        asking.close_after_reply = true;
      } else {
        port->kill();
      }
    }
  }
  return killed;
}

bool Server::unblock_client(uint64_t id, bool with_error) {
  for (const auto& thread : io_threads_) {
    for (const std::shared_ptr<SessionPort>& port : thread->sessions().ports()) {
      if (port->id() == id) return port->unblock(with_error);
    }
  }
  return false;
}

std::shared_ptr<ClientPort> Server::client_port(uint64_t id) {
  for (const auto& thread : io_threads_) {
    for (const std::shared_ptr<SessionPort>& port : thread->sessions().ports()) {
      if (port->id() == id) return port;
    }
  }
  return nullptr;
}

void Server::pause_changed() {
  for (const auto& thread : io_threads_) thread->pause_changed();
  // What is due waits for the end of a pause, or has waited for it.
  state_.wake_timer();
}

void Server::scripts_flushed() {
  for (const auto& thread : io_threads_) {
    IoThread* const own = thread.get();
    own->post([own] {
      own->run_outermost([own] { script_engine(own->engine()).follow_flush(own->execution()); });
    });
  }
}

void Server::users_changed() {
  if (http_ != nullptr) http_->users_changed();
}

// --- Checkpoints and the end ---

std::string Server::checkpoint(bool wait) {
  if (!wait) {
    const bool started = start_checkpoint(Kind::kSave, true) != Start::kNowhere;
    return started ? "" : "ERR nothing can be kept: the server has no directory";
  }
  if (const std::string error = make_store(); !error.empty()) return "ERR " + error;
  if (checkpoint_runs() && running_kind() == Kind::kSave) {
    return "ERR Background save already in progress";
  }
  Checkpointer& checkpointer = *store_->checkpointer();
  const Status status = checkpointer.wait_until_done(checkpointer.request());
  return status.ok() ? std::string() : "ERR " + status.message();
}

int64_t Server::last_checkpoint_s() {
  if (!store_ready_.load(std::memory_order_acquire)) return started_ms_ / 1000;
  const int64_t at_ms = store_->checkpointer()->status().last_success_ms;
  return (at_ms == 0 ? started_ms_ : at_ms) / 1000;
}

std::string Server::shutdown(ShutdownMode mode, bool /*now*/, bool /*force*/, bool abort) {
  // It never waits for replicas, so there is nothing that could be called off.
  if (abort) return "ERR No shutdown in progress.";
  if (mode == ShutdownMode::kSave) {
    if (const std::string error = make_store(); !error.empty()) {
      spdlog::warn("The data cannot be kept: {}", error);
      return "ERR Errors trying to SHUTDOWN. Check logs.";
    }
  }
  spdlog::info("User requested shutdown...");
  request_stop(mode);
  return {};
}

// --- Time, memory, the log ---

int64_t Server::unix_time_us() {
  using std::chrono::system_clock;
  const auto now = system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

int64_t Server::steady_time_us() { return Clocks::steady_us(); }

void Server::sleep_ms(int64_t duration_ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(duration_ms));
}

uint64_t Server::used_memory_bytes() { return sluice::used_memory_bytes(); }

bool Server::purge_memory() { return sluice::purge_memory(); }

std::string Server::allocator_report() { return sluice::allocator_report(); }

void Server::poll_events() {
  if (IoThread* thread = IoThread::current()) thread->poll_nested();
}

void Server::log_warning(const std::string& message) { spdlog::warn("{}", message); }

}  // namespace sluice
