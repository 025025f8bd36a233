// LoadingProgress: the progress of recovery, for the log, the supervisor and INFO.
//
// Threads: written by the control thread, readable by any.
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

  // From now on clients get -LOADING.
  void begin();
  // The data is about to be read.
  void begin_reading();
  // Returns false if the server should stop.
  bool update(const RecoveryProgress& progress);
  void note_done(const RecoveryResult& result);

  uint64_t recovered_keys() const { return recovered_keys_.load(); }
  // The fields of INFO persistence while loading.
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
