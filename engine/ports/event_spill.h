// EventSpill: holds the older events of queues outside of memory. A server that keeps data uses
// storage/event_file.h; without an EventSpill, events remain in memory.
//
// It makes nothing durable: after a restart, events are restored from the checkpoint and the
// journal, like all other data.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace sluice {

// Spilled bytes, which do not change. The destructor frees their place. Thread-safe.
class SpilledBytes {
 public:
  SpilledBytes() = default;
  virtual ~SpilledBytes() = default;
  SpilledBytes(const SpilledBytes&) = delete;
  SpilledBytes& operator=(const SpilledBytes&) = delete;

  // May wait for the disk. Returns null if the bytes cannot be read; the implementation has
  // reported the error.
  virtual std::shared_ptr<const std::string> read() const = 0;
  // The heap bytes that they still take.
  virtual size_t memory_bytes() const = 0;
};

class EventSpill {
 public:
  virtual ~EventSpill() = default;
  // Never waits: a thread of its own writes the bytes later. Thread-safe.
  virtual std::unique_ptr<SpilledBytes> keep(std::string bytes) = 0;
};

}  // namespace sluice
