// ConnectionLimit: whether one connection more is accepted (maxclients, the system's limit of
// descriptors), which one is closed to make room, and what is closed after the journal has used a
// spare descriptor. For HTTP, net/http/connection_limit.cc decides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/base/log_pace.h"
#include "engine/base/status.h"
#include "net/io/listener.h"
#include "net/io/strangers.h"
#include "net/server/server_shared.h"
#include "storage/spare_files.h"

namespace sluice {

// Lowers maxclients and http-maxclients to what the system allows. Fails if not even the server's
// own files fit.
Status fit_connections(Config& config);
// For CONFIG SET maxclients, with Redis's error.
Status check_connections(const Settings& settings);

class ConnectionLimit {
 public:
  explicit ConnectionLimit(ServerShared& shared)
      : shared_(shared), spare_files_(std::make_shared<SpareFiles>()) {}

  const std::shared_ptr<SpareFiles>& spare_files() const { return spare_files_; }

  // --- I/O thread 0, which accepts ---
  bool may_accept();
  bool may_accept_http();
  Listener::Refusal refuse(bool loopback);

  // Called by the control thread once a second. New connections wait while spare descriptors are
  // missing.
  void relieve();

 private:
  std::vector<Strangers<Session>*> strangers();
  bool is_full() const;
  size_t close_connections(size_t count);
  size_t close_idle(size_t count);

  ServerShared& shared_;
  const std::shared_ptr<SpareFiles> spare_files_;
  // The number of spare descriptors missing at the last check, when further connections are closed
  // although it has not changed, and how many closures have not been logged.
  size_t missing_ = 0;
  int64_t again_ms_ = 0;
  size_t untold_ = 0;
  LogPace in_log_;
};

}  // namespace sluice
