// LoadingProgress: how far the recovery of the data has come, for the log, the supervisor and INFO.
//
// Threads: the control thread writes, any reads.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/ports/server_port.h"
#include "net/server/server_shared.h"
#include "storage/recovery.h"

namespace sluice {

class LoadingProgress {
 public:
  explicit LoadingProgress(ServerShared& shared) : shared_(shared) {}

  // Clients are told -LOADING from now on.
  void begin();
  // The data are about to be read.
  void begin_reading();
  // False: the server is to end.
  bool update(const RecoveryProgress& progress);
  void note_done(const RecoveryResult& result);

  uint64_t recovered_keys() const { return recovered_keys_.load(); }
  // The fields of INFO persistence while it loads.
  void info(InfoWriter& out) const;

 private:
  ServerShared& shared_;
  std::atomic<int64_t> started_s_{0};
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint64_t> total_bytes_{0};
  std::atomic<uint64_t> recovered_keys_{0};
  int64_t begun_ms_ = 0;
  int64_t logged_ms_ = 0;
};

}  // namespace sluice
