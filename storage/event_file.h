// EventFile implements the spill of event logs (engine/ports/event_spill.h): an unlinked file in
// the data directory, which disappears with the process.
//
// The file is scratch space: nothing is synced, and its failures are not failures of the journal.
// What cannot be written stays in memory and is retried; what cannot be read is reported as lost. A
// checksum kept in memory detects changes on disk.
//
// The file consists of 4 KB slots. The bytes of one keep() call take as many slots as they need.
// Free slots are reused before the file grows. When more slots are free than in use, and more than
// kKeptSlots, their blocks are returned to the file system; when none is in use, a file of more
// than kKeptSlots is truncated to nothing.
//
// Threads: any thread may keep and read. A thread of its own writes once kBatch pieces are waiting.
// The lock is a leaf and is held for in-memory work only.
// leaf, held for plain memory work only.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/mutex.h"
#include "engine/base/status.h"
#include "engine/base/thread.h"
#include "engine/ports/event_spill.h"
#include "storage/log_sink.h"

namespace sluice {

struct EventFileOptions {
  std::string directory;  // must exist
  // Space that must stay free on the disk when the file grows. Called on any thread.
  std::function<uint64_t()> min_free_bytes = [] { return uint64_t{0}; };
  std::chrono::milliseconds retry_delay{5000};  // after a failed write
  LogSink sink;
};

class EventFile final : public EventSpill, public std::enable_shared_from_this<EventFile> {
 public:
  static constexpr size_t kSlotBytes = 4096;
  static constexpr size_t kBatch = 16;
  static constexpr size_t kKeptSlots = 256;

  static Result<std::shared_ptr<EventFile>> open(EventFileOptions options);
  ~EventFile() override;

  std::unique_ptr<SpilledBytes> keep(std::string bytes) override;
  // Ends the thread. What is in memory stays there and everything remains readable. The owner calls
  // this before it releases the file, since kept pieces may live longer.
  void stop();

  // Bytes on disk, counting used and free slots.
  uint64_t disk_bytes() const EXCLUDES(mutex_);

 private:
  class Kept;
  // What one keep() call stored. Size and checksum never change; the rest is guarded by the lock.
  struct Piece {
    uint32_t size = 0;
    uint64_t checksum = 0;
    std::shared_ptr<const std::string> bytes;  // null: in the slots
    std::vector<uint32_t> slots;
    bool dropped = false;       // no longer referenced
    mutable bool told = false;  // its loss has been reported
  };
  using Pieces = std::vector<std::shared_ptr<Piece>>;
  // Next work of the thread: pieces to write, and free slots whose blocks are returned, or all
  // blocks.
  struct Work {
    Pieces pieces;
    std::vector<uint32_t> slots;
    bool cut = false;
  };

  EventFile(EventFileOptions options, int file);
  void run() EXCLUDES(mutex_);
  // Returns false when stopped.
  bool wait_for_work(Work& work) EXCLUDES(mutex_);
  void free_blocks(Work& work) EXCLUDES(mutex_);
  // Writes the pieces until one fails; the rest is queued again.
  void write_all(const Pieces& pieces) EXCLUDES(mutex_);
  Status write(Piece& piece) EXCLUDES(mutex_);
  Status write_slots(const std::string& bytes, const std::vector<uint32_t>& slots) const;
  void pause(const Status& status) EXCLUDES(mutex_);
  std::shared_ptr<const std::string> read(const Piece& piece) const EXCLUDES(mutex_);
  void tell_lost(const Piece& piece, const std::string& why) const EXCLUDES(mutex_);
  void release(Piece& piece) EXCLUDES(mutex_);
  // Returns false if the file would have to grow by more than it may.
  bool take_slots(std::vector<uint32_t>& slots, size_t bytes) REQUIRES(mutex_);
  void give_back(std::vector<uint32_t>& slots) REQUIRES(mutex_);
  bool has_slack() const REQUIRES(mutex_);
  uint64_t free_disk_bytes() const;

  const EventFileOptions options_;
  const int file_;

  mutable Mutex mutex_;
  std::condition_variable changed_;
  Pieces waiting_ GUARDED_BY(mutex_);
  std::vector<uint32_t> free_ GUARDED_BY(mutex_);
  std::vector<uint32_t> holes_ GUARDED_BY(mutex_);  // free, and without blocks
  uint32_t slots_ GUARDED_BY(mutex_) = 0;           // size of the file
  uint64_t may_grow_by_ GUARDED_BY(mutex_) = 0;     // in slots, by the last look at the disk
  bool failing_ GUARDED_BY(mutex_) = false;  // the last write failed, and that has been logged
  std::chrono::steady_clock::time_point retry_at_ GUARDED_BY(mutex_);
  bool stopped_ GUARDED_BY(mutex_) = false;
  Thread thread_;  // last: it uses all of the above
};

}  // namespace sluice
