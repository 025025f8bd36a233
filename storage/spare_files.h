// SpareFiles holds descriptors in reserve, so that the journal can open files when the process or
// the system has run out. Each spare one is closed in exchange for one file. The owner of this
// object checks whether some are missing and recovers them by closing less important descriptors.
//
// Thread-safe: both the journal's writers and RocksDB's threads open files.
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "engine/base/mutex.h"

namespace sluice {

class SpareFiles {
 public:
  // The most that can be needed at once before a connection is closed: a log, a table and their
  // directories for a full memtable, the same for a checkpoint, and a new MANIFEST.
  static constexpr size_t kCount = 16;

  SpareFiles() { refill(); }
  ~SpareFiles();
  SpareFiles(const SpareFiles&) = delete;
  SpareFiles& operator=(const SpareFiles&) = delete;

  // Closes one. Returns false if none is left.
  bool give_one() EXCLUDES(mutex_);
  // Reopens the missing ones. Returns false if the system still has no descriptors.
  bool refill() EXCLUDES(mutex_);
  size_t missing() const { return missing_.load(std::memory_order_relaxed); }

 private:
  Mutex mutex_;
  std::vector<int> files_ GUARDED_BY(mutex_);
  std::atomic<size_t> missing_{kCount};
};

}  // namespace sluice
