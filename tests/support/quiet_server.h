// QuietServer: a minimal ServerPort, for an engine without a server. The test sets its clocks;
// `on_poll` simulates what arrives while a slow script lets the sockets be served.
//
// Threads: several may read the clocks, if these do not step.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/ports/server_port.h"

namespace sluice::test {

class QuietServer final : public ServerPort {
 public:
  int64_t wall_us = 1'700'000'000'000'000;
  int64_t steady_us = 1'000'000'000;
  // Added to the steady clock at every reading, so that scripts become slow; also to the wall
  // clock, which is thereby set repeatedly.
  int64_t step_us = 0;
  int64_t wall_step_us = 0;
  uint64_t used_bytes = 0;
  GroupPort* in_group = nullptr;
  PersistencePort* on_disk = nullptr;
  std::function<void()> on_poll;
  std::vector<std::string> warnings;

  void info(Bytes, InfoWriter&) override {}
  std::vector<std::pair<std::string, std::string>> config_get(
      const std::vector<std::string>&) override {
    return {};
  }
  Status config_set(const std::vector<std::pair<std::string, std::string>>&) override { return {}; }
  Status config_rewrite() override { return {}; }
  Status load_users() override { return {}; }
  Status save_users() override { return {}; }
  void reset_stats() override {}
  std::vector<ClientFacts> clients(const Client&) override { return {}; }
  ClientFacts client(const Client&) override { return {}; }
  size_t kill_clients(Client&, const std::function<bool(const ClientFacts&)>&) override {
    return 0;
  }
  bool unblock_client(uint64_t, bool) override { return false; }
  GroupPort* group() override { return in_group; }
  PersistencePort* persistence() override { return on_disk; }
  Status checkpoint() override { return {}; }
  int64_t last_checkpoint_s() override { return 0; }
  Status shutdown(ShutdownMode, bool, bool, bool) override { return {}; }
  int64_t unix_time_us() override { return stepped(wall_us, wall_step_us); }
  int64_t steady_time_us() override { return stepped(steady_us, step_us); }
  void sleep_ms(int64_t) override {}
  uint64_t used_memory_bytes() override { return used_bytes; }
  bool purge_memory() override { return true; }
  std::string allocator_report() override { return {}; }
  void poll_events() override {
    if (on_poll) on_poll();
  }
  void log_warning(const std::string& message) override { warnings.push_back(message); }

 private:
  static int64_t stepped(int64_t& clock_us, int64_t step_us) {
    if (step_us != 0) clock_us += step_us;
    return clock_us;
  }
};

}  // namespace sluice::test
