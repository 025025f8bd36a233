// PersistencePort: what BGSAVE, BGREWRITEAOF, WAITAOF and CONFIG SET appendonly ask of the process
// besides what every ServerPort says (ServerPort::persistence).
//
// Functions may be called from any I/O thread, under no shard lock.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace sluice {

class PersistencePort {
 public:
  virtual ~PersistencePort() = default;

  // Both write a checkpoint; what is told of one that runs is Redis's for the two.
  enum class Kind : uint8_t { kSave, kRewrite };
  enum class Start : uint8_t {
    kNow,
    kBehind,     // behind the running one, or when the transaction is over
    kSameRuns,   // one of this kind runs: nothing was asked for
    kOtherRuns,  // one of the other kind runs, and `may_wait` was false
    kNowhere,    // there is no directory
  };
  virtual Start start_checkpoint(Kind kind, bool may_wait) = 0;

  // For who has just set `appendonly` to yes. While the checkpoint with which the journal begins to
  // count is not on the disk: `then` is called once when it is (an empty text) or cannot be (the
  // whole error), on any thread, perhaps before this returns. False: nothing is to be waited for.
  virtual bool when_kept(std::function<void(const std::string& error)> then) = 0;

  // `appendonly` is yes.
  virtual bool is_journaling() const = 0;
  // All that the journal has been given is on the disk, and recovery would find it.
  virtual bool is_synced() const = 0;
  // Asks for a sync at once. `then` is called once, on any thread, perhaps before this returns:
  // with true when what the journal has been given so far is on the disk, with false when
  // `appendonly` is no (any more). Never, where the disk fails.
  virtual void when_synced(std::function<void(bool synced)> then) = 0;
};

}  // namespace sluice
