// PersistencePort: what BGSAVE, BGREWRITEAOF, WAITAOF and CONFIG SET appendonly need from the
// process in addition to ServerPort (ServerPort::persistence).
//
// Functions may be called from any I/O thread, under no shard lock.
#pragma once

#include <cstdint>
#include <functional>

#include "engine/base/status.h"

namespace sluice {

class PersistencePort {
 public:
  virtual ~PersistencePort() = default;

  // Both kinds write a checkpoint. They differ in Redis's replies about a running one.
  enum class Kind : uint8_t { kSave, kRewrite };
  enum class Start : uint8_t {
    kNow,
    kBehind,     // after the running one, or after the transaction
    kSameRuns,   // one of this kind is running: nothing was requested
    kOtherRuns,  // one of the other kind is running, and `may_wait` was false
    kNowhere,    // there is no directory
  };
  virtual Start start_checkpoint(Kind kind, bool may_wait) = 0;

  // For CONFIG SET appendonly yes. The journal counts only after a first checkpoint is on the disk.
  // `then` is called once when it is or when it fails (with a refusal()), on any thread, perhaps
  // before this returns. Returns false if there is nothing to wait for.
  virtual bool when_kept(std::function<void(const Status& status)> then) = 0;

  // Whether `appendonly` is yes.
  virtual bool is_journaling() const = 0;
  // Whether everything passed to the journal is on the disk, where recovery would find it.
  virtual bool is_synced() const = 0;
  // Requests a sync at once. `then` is called once, on any thread, perhaps before this returns:
  // with true when everything passed to the journal so far is on the disk, with false when
  // `appendonly` is or becomes no. It is never called if the disk fails.
  virtual void when_synced(std::function<void(bool synced)> then) = 0;
};

}  // namespace sluice
