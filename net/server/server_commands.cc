#include "net/server/server_commands.h"

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
#include "net/process/wall_clock.h"
#include "net/server/server_settings.h"

namespace sluice {

std::vector<std::pair<std::string, std::string>> ServerCommands::config_get(
    const std::vector<std::string>& patterns) {
  return shared_.config.get(patterns);
}

Status ServerCommands::config_set(
    const std::vector<std::pair<std::string, std::string>>& parameters) {
  return shared_.config.set(parameters);
}

bool ServerCommands::is_secret(Bytes parameter) const {
  const Directive* directive = find_directive(parameter);
  return directive != nullptr && directive->secret;
}

Status ServerCommands::config_rewrite() {
  const std::shared_ptr<const Settings> settings = shared_.config.settings();
  // Users of an ACL file are stored there; otherwise the user lines are updated.
  if (!settings->aclfile.empty()) return shared_.config.rewrite(std::nullopt);
  // The default user gets a line only if requirepass does not describe it completely: a line would
  // override a requirepass that somebody sets later.
  Acl plain;
  plain.set_default_password(settings->requirepass);
  const std::string plain_line = Acl::line_of(*plain.find("default"));
  std::vector<std::string> lines;
  for (const auto& user : shared_.engine->acl().users()) {
    std::string line = Acl::line_of(*user);
    if (line != plain_line) lines.push_back(std::move(line));
  }
  return shared_.config.rewrite(lines);
}

namespace {

constexpr const char* kNoAclFile =
    "ERR This Redis instance is not configured to use an ACL file. You may want to specify users "
    "via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis "
    "configuration file set) in order to store users in the Redis configuration.";

}  // namespace

Status ServerCommands::load_users() {
  const std::shared_ptr<const Settings> settings = shared_.config.settings();
  if (settings->aclfile.empty()) return refusal(kNoAclFile);
  const Status status = load_users_file(*shared_.engine, settings->aclfile);
  return status.ok() ? status : refusal("ERR " + status.message());
}

Status ServerCommands::save_users() {
  const std::shared_ptr<const Settings> settings = shared_.config.settings();
  if (settings->aclfile.empty()) return refusal(kNoAclFile);
  Status status = replace_file(settings->aclfile, shared_.engine->acl().text());
  if (status.ok()) return status;
  spdlog::warn("Cannot write the ACL file {}: {}", settings->aclfile, status.message());
  return refusal(
      "ERR There was an error trying to save the ACLs. Please check the server logs for more "
      "information");
}

void ServerCommands::reset_stats() {
  traffic_.reset();
  shared_.state.connections_received.store(0);
  shared_.state.connections_rejected.store(0);
  shared_.state.query_buffer_disconnections.store(0);
  shared_.state.output_buffer_disconnections.store(0);
  if (shared_.tls != nullptr) shared_.tls->reset_stats();
}

// --- Connections ---

std::vector<ClientFacts> ServerCommands::clients(const Client& asking) {
  const int64_t now_ms = Clocks::steady_ms();
  std::vector<ClientFacts> all;
  for (const auto& thread : shared_.io_threads) {
    for (const std::shared_ptr<SessionPort>& port : thread->sessions().ports()) {
      if (port->killed()) continue;
      // Others see the state after its last batch; the connection itself sees the present one.
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

ClientFacts ServerCommands::client(const Client& asking) {
  ClientFacts facts;
  facts.id = asking.id;
  facts.address = asking.address;
  // A closing connection has no port any more, and one of the HTTP side has no session.
  if (const auto* port = dynamic_cast<const SessionPort*>(asking.port.get())) {
    if (port->session() != nullptr) port->session()->publish();
    facts = port->facts(Clocks::steady_ms());
  }
  SessionPort::describe(asking, facts);
  return facts;
}

size_t ServerCommands::kill_clients(Client& asking,
                                    const std::function<bool(const ClientFacts&)>& matches) {
  const int64_t now_ms = Clocks::steady_ms();
  size_t killed = 0;
  for (const auto& thread : shared_.io_threads) {
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

bool ServerCommands::unblock_client(uint64_t id, bool with_error) {
  for (const auto& thread : shared_.io_threads) {
    for (const std::shared_ptr<SessionPort>& port : thread->sessions().ports()) {
      if (port->id() == id) return port->unblock(with_error);
    }
  }
  return false;
}

std::shared_ptr<ClientPort> ServerCommands::client_port(uint64_t id) {
  for (const auto& thread : shared_.io_threads) {
    for (const std::shared_ptr<SessionPort>& port : thread->sessions().ports()) {
      if (port->id() == id) return port;
    }
  }
  return nullptr;
}

void ServerCommands::pause_changed() {
  for (const auto& thread : shared_.io_threads) thread->pause_changed();
  // Due work may wait for the end of a pause, or has been waiting for it.
  shared_.state.wake_timer();
}

void ServerCommands::scripts_flushed() {
  for (const auto& thread : shared_.io_threads) {
    IoThread* const own = thread.get();
    own->post([own] {
      own->levels().run_outermost(
          [own] { script_engine(own->engine()).follow_flush(own->levels().execution()); });
    });
  }
}

void ServerCommands::users_changed() {
  for (const auto& thread : shared_.io_threads) thread->rights_changed();
  if (shared_.http != nullptr) shared_.http->users_changed();
}

// --- Checkpoints and the end ---

Status ServerCommands::checkpoint() {
  // A checkpoint waits for what is being applied, which this thread may be doing.
  if (shared_.engine->following.load()) {
    return refusal(
        "ERR SAVE is refused at a standby, which would apply nothing meanwhile: use BGSAVE");
  }
  const Status made = store_.make();
  if (!made.ok()) return refusal("ERR " + made.message());
  if (store_.checkpoint_runs() && store_.running_kind() == PersistencePort::Kind::kSave) {
    return refusal("ERR Background save already in progress");
  }
  Checkpointer& checkpointer = *store_.get().checkpointer();
  const Status status = checkpointer.wait_until_done(checkpointer.request());
  return status.ok() ? status : refusal("ERR " + status.message());
}

Status ServerCommands::shutdown(ShutdownMode mode, bool /*now*/, bool /*force*/, bool abort) {
  // A shutdown never waits for replicas, so there is nothing to abort.
  if (abort) return refusal("ERR No shutdown in progress.");
  if (mode == ShutdownMode::kSave) {
    if (const Status made = store_.make(); !made.ok()) {
      spdlog::warn("Cannot keep the data: {}", made.message());
      return refusal("ERR Errors trying to SHUTDOWN. Check logs.");
    }
  }
  spdlog::info("User requested shutdown...");
  life_.request_stop(mode);
  return {};
}

// --- Time, memory, the log ---

int64_t ServerCommands::unix_time_us() { return wall_us(); }

int64_t ServerCommands::steady_time_us() { return Clocks::steady_us(); }

void ServerCommands::sleep_ms(int64_t duration_ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(duration_ms));
}

uint64_t ServerCommands::used_memory_bytes() { return sluice::used_memory_bytes(); }

bool ServerCommands::purge_memory() { return sluice::purge_memory(); }

std::string ServerCommands::allocator_report() { return sluice::allocator_report(); }

void ServerCommands::poll_events() {
  if (IoThread* thread = IoThread::current()) thread->poll_nested();
}

void ServerCommands::log_script(ScriptLogLevel level, const std::string& line) {
  constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::trace, spdlog::level::debug,
                                                   spdlog::level::info, spdlog::level::warn};
  spdlog::log(kLevels[static_cast<size_t>(level)], "{}", line);
}

void ServerCommands::log_warning(const std::string& message) { spdlog::warn("{}", message); }

}  // namespace sluice
