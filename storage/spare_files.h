// SpareFiles: descriptors that are kept open so that the journal finds some when the process or the
// system has no further one. Each is closed in exchange for one file; the owner of this object
// looks whether some are missing, and gets them back by closing what matters less.
//
// Thread-safe: the journal's files are opened by its writers and by RocksDB's threads alike.
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "engine/base/mutex.h"

namespace sluice {

class SpareFiles {
 public:
  // What one moment can need at most while nobody closes a connection: a log, a table and their
  // directories for a memtable that is full, the same for a checkpoint, a new table of contents.
  static constexpr size_t kCount = 16;

  SpareFiles() { refill(); }
  ~SpareFiles();
  SpareFiles(const SpareFiles&) = delete;
  SpareFiles& operator=(const SpareFiles&) = delete;

  // Closes one; false: none is left.
  bool give_one() EXCLUDES(mutex_);
  // Opens again what is missing; false: the system still gives no more.
  bool refill() EXCLUDES(mutex_);
  size_t missing() const { return missing_.load(std::memory_order_relaxed); }

 private:
  Mutex mutex_;
  std::vector<int> files_ GUARDED_BY(mutex_);
  std::atomic<size_t> missing_{kCount};
};

}  // namespace sluice
