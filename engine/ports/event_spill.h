// EventSpill: where the older events of queues are kept out of memory. storage/event_file.h is the
// one of a server that keeps data; without one, events stay in memory.
//
// It makes nothing durable: events come back after a restart from the checkpoint and the journal,
// as all else does.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace sluice {

// Bytes that were given away and will not change; its end gives their place back. Any thread.
class SpilledBytes {
 public:
  SpilledBytes() = default;
  virtual ~SpilledBytes() = default;
  SpilledBytes(const SpilledBytes&) = delete;
  SpilledBytes& operator=(const SpilledBytes&) = delete;

  // May wait for the disk. Null: they cannot be read, and whoever keeps the spill has been told.
  virtual std::shared_ptr<const std::string> read() const = 0;
  // What they still take of the heap.
  virtual size_t memory_bytes() const = 0;
};

class EventSpill {
 public:
  virtual ~EventSpill() = default;
  // Never waits: the bytes are written later, by a thread of its own. Any thread.
  virtual std::unique_ptr<SpilledBytes> keep(std::string bytes) = 0;
};

}  // namespace sluice
