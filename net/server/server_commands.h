// ServerCommands: implements ServerPort, through which commands of all I/O threads access the
// process.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/ports/server_port.h"
#include "net/server/server_info.h"
#include "net/server/server_life.h"
#include "net/server/server_shared.h"
#include "net/server/server_store.h"
#include "net/server/traffic_stats.h"

namespace sluice {

class ServerCommands final : public ServerPort {
 public:
  ServerCommands(ServerShared& shared, ServerLife& life, ServerStore& store, TrafficStats& traffic,
                 ServerInfo& info)
      : shared_(shared), life_(life), store_(store), traffic_(traffic), info_(info) {}

  // --- ServerPort ---
  void info(Bytes section, InfoWriter& out) override { info_.write(section, out); }
  std::vector<std::pair<std::string, std::string>> config_get(
      const std::vector<std::string>& patterns) override;
  Status config_set(const std::vector<std::pair<std::string, std::string>>& parameters) override;
  Status config_rewrite() override;
  bool is_secret(Bytes parameter) const override;
  Status load_users() override;
  Status save_users() override;
  void reset_stats() override;
  std::vector<ClientFacts> clients(const Client& asking) override;
  ClientFacts client(const Client& asking) override;
  size_t kill_clients(Client& asking,
                      const std::function<bool(const ClientFacts&)>& matches) override;
  bool unblock_client(uint64_t id, bool with_error) override;
  std::shared_ptr<ClientPort> client_port(uint64_t id) override;
  void pause_changed() override;
  void scripts_flushed() override;
  void users_changed() override;
  PersistencePort* persistence() override { return &store_; }
  GroupPort* group() override { return shared_.group; }
  Status checkpoint() override;
  int64_t last_checkpoint_s() override { return info_.last_checkpoint_s(); }
  Status shutdown(ShutdownMode mode, bool now, bool force, bool abort) override;
  int64_t unix_time_us() override;
  int64_t steady_time_us() override;
  void sleep_ms(int64_t duration_ms) override;
  uint64_t used_memory_bytes() override;
  bool purge_memory() override;
  std::string allocator_report() override;
  void poll_events() override;
  void log_warning(const std::string& message) override;
  void log_script(ScriptLogLevel level, const std::string& line) override;

 private:
  ServerShared& shared_;
  ServerLife& life_;
  ServerStore& store_;
  TrafficStats& traffic_;
  ServerInfo& info_;
};

}  // namespace sluice
