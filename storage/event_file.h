// EventFile: the spill of event logs (engine/ports/event_spill.h): a file in the data directory
// that has no name any more, so that nothing of it outlasts the process.
//
// It is scratch, so nothing is synced and no failure of it is one of the journal: what cannot be
// written stays in memory and is tried again, and what cannot be read is reported as lost. A
// checksum, kept in memory, tells what the disk has changed.
//
// The file is made of slots of 4 KB; the bytes of one call of keep() take as many as they need.
// Free ones are used again before the file grows. Where more are free than in use, and more than
// kKeptSlots, their blocks go back to the file system; with none in use a file of more than that is
// cut to nothing.
//
// Threads: any may keep and read. One of its own writes, once kBatch are waiting. Its lock is a
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
  std::string directory;  // exists
  // What the file leaves free on the disk when it grows. Any thread.
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
  // Ends the thread. What is in memory stays there; all can be read as before. Its owner calls it
  // before it lets go: what was kept may live longer.
  void stop();

  // What it takes on the disk, for slots in use and free ones.
  uint64_t disk_bytes() const EXCLUDES(mutex_);

 private:
  class Kept;
  // What was kept at once. Its size and checksum never change; the rest is under the lock.
  struct Piece {
    uint32_t size = 0;
    uint64_t checksum = 0;
    std::shared_ptr<const std::string> bytes;  // null: in the slots
    std::vector<uint32_t> slots;
    bool dropped = false;       // nobody has it any more
    mutable bool told = false;  // that it is lost
  };
  using Pieces = std::vector<std::shared_ptr<Piece>>;
  // What the thread does next: pieces to write; free slots whose blocks go back, or all blocks.
  struct Work {
    Pieces pieces;
    std::vector<uint32_t> slots;
    bool cut = false;
  };

  EventFile(EventFileOptions options, int file);
  void run() EXCLUDES(mutex_);
  // False: it is stopped.
  bool wait_for_work(Work& work) EXCLUDES(mutex_);
  void free_blocks(Work& work) EXCLUDES(mutex_);
  // Writes them until one fails; what is not written waits again.
  void write_all(const Pieces& pieces) EXCLUDES(mutex_);
  Status write(Piece& piece) EXCLUDES(mutex_);
  Status write_slots(const std::string& bytes, const std::vector<uint32_t>& slots) const;
  void pause(const Status& status) EXCLUDES(mutex_);
  std::shared_ptr<const std::string> read(const Piece& piece) const EXCLUDES(mutex_);
  void tell_lost(const Piece& piece, const std::string& why) const EXCLUDES(mutex_);
  void release(Piece& piece) EXCLUDES(mutex_);
  // False: the file would have to grow by more than it may.
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
  uint32_t slots_ GUARDED_BY(mutex_) = 0;           // that the file has
  uint64_t may_grow_by_ GUARDED_BY(mutex_) = 0;     // slots, by the last look at the disk
  bool failing_ GUARDED_BY(mutex_) = false;         // the last write did, and that has been told
  std::chrono::steady_clock::time_point retry_at_ GUARDED_BY(mutex_);
  bool stopped_ GUARDED_BY(mutex_) = false;
  Thread thread_;  // last: it uses all of the above
};

}  // namespace sluice
