// ServerInfo: the sections of INFO that the server provides. Fields have the names and order of
// Redis 7.0.15, so that programs can parse them; additional fields are at the end of a section and
// begin with "sluice_". Any thread.
#pragma once

#include "engine/ports/server_port.h"
#include "net/server/loading_progress.h"
#include "net/server/server_life.h"
#include "net/server/server_listeners.h"
#include "net/server/server_shared.h"
#include "net/server/server_store.h"
#include "net/server/traffic_stats.h"

namespace sluice {

class ServerInfo {
 public:
  ServerInfo(ServerShared& shared, const ServerLife& life, const LoadingProgress& loading,
             const ServerListeners& listeners, ServerStore& store, const TrafficStats& traffic)
      : shared_(shared),
        life_(life),
        loading_(loading),
        listeners_(listeners),
        store_(store),
        traffic_(traffic) {}

  void write(Bytes section, InfoWriter& out);
  // The last checkpoint in unix time, or the start of the server if there was none yet.
  int64_t last_checkpoint_s();

 private:
  void server(InfoWriter& out);
  void clients(InfoWriter& out);
  void memory(InfoWriter& out);
  void script_memory(InfoWriter& out);
  void stats(InfoWriter& out);
  void replication(InfoWriter& out);
  // --- net/server/server_info_persistence.cc ---
  void persistence(InfoWriter& out);
  void journal(InfoWriter& out, const CheckpointStatus& checkpoint);

  ServerShared& shared_;
  const ServerLife& life_;
  const LoadingProgress& loading_;
  const ServerListeners& listeners_;
  ServerStore& store_;
  const TrafficStats& traffic_;
};

}  // namespace sluice
