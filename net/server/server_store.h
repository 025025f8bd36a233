// ServerStore: the store of a server, opened at the start if anything is or was kept, otherwise
// when something is to be kept for the first time; checkpoints; and the change from `appendonly no`
// to `yes`.
//
// Threads: any, unless stated otherwise.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/base/mutex.h"
#include "engine/base/status.h"
#include "engine/ports/persistence_port.h"
#include "net/server/loading_progress.h"
#include "net/server/server_life.h"
#include "net/server/server_shared.h"
#include "storage/event_file.h"
#include "storage/spare_files.h"
#include "storage/store.h"

namespace sluice {

// EX_SOFTWARE of sysexits.h: with `appendonly no`, a command that did not end prevented the last
// checkpoint.
inline constexpr int kCheckpointLostExitCode = 70;

// The seed for all engines of the process, because the hash function's state is global: that of the
// first engine's data directory.
uint64_t hash_seed(const Settings& settings);

class ServerStore final : public PersistencePort {
 public:
  ServerStore(ServerShared& shared, ServerLife& life, LoadingProgress& loading,
              std::shared_ptr<SpareFiles> spare_files);
  ~ServerStore() override;

  // For a server without a directory; call before it starts.
  void keep_nothing() { keeps_nothing_ = true; }

  // --- PersistencePort ---
  Start start_checkpoint(Kind kind, bool may_wait) override;
  bool when_kept(std::function<void(const Status& status)> then) override;
  bool is_journaling() const override;
  bool is_synced() const override;
  void when_synced(std::function<void(bool synced)> then) override;

  // Whether the checkpointer exists, so that get() may be used.
  bool is_ready() const { return ready_.load(std::memory_order_acquire); }
  Store& get() { return *store_; }
  uint64_t event_bytes() const { return event_file_ != nullptr ? event_file_->disk_bytes() : 0; }
  // If nothing was kept at the start: creates the store. Called by a thread that may wait for it.
  // After an error it may be called again.
  Status make() EXCLUDES(making_);
  bool checkpoint_runs() const;
  Kind running_kind() const;
  // The last attempt to create the store failed.
  bool has_failed() const { return failed_.load(); }
  // The journal can no longer be turned on.
  bool is_broken() const { return is_ready() && store_->journal().broken(); }
  // The number of changes that would be lost if the process ended now.
  uint64_t unsaved_changes() const;
  // Called within CONFIG SET.
  void settings_changed(const Settings& before, const Settings& after);

  // --- The control thread ---
  // Recovers the data. Returns false if the server must stop (see ServerLife::finish).
  bool load();
  bool is_wanted() const { return wanted_.load(); }
  void make_if_wanted();
  void close();
  // For a shutdown without close(): syncs. What cannot be kept decides the exit code, unless
  // something has.
  void sync_for_exit();

 private:
  CloseMode close_mode() const;
  uint64_t changes_without_checkpoint() const;
  void tell_lost_changes();
  StoreOptions options(const Settings& settings);
  void open_event_file(const Settings& settings);
  void begin_serving();
  Status open_and_attach() REQUIRES(making_);
  bool attach(Store& store);
  bool is_time_to_retry() const;
  // Asks the control thread to do it.
  void want();
  void on_journal_failed(const Status& status);
  void on_fenced(const Status& status);
  void on_checkpoint();
  void appendonly_changed(bool on);
  void begin_switch() EXCLUDES(switch_mutex_);
  void look_at_switch() EXCLUDES(switch_mutex_);
  // `back`: the setting returns to no.
  void end_switch(const Status& status, bool back) EXCLUDES(switch_mutex_);

  ServerShared& shared_;
  ServerLife& life_;
  LoadingProgress& loading_;
  const std::shared_ptr<SpareFiles> spare_files_;
  std::unique_ptr<Store> store_;
  std::shared_ptr<EventFile> event_file_;  // null: events stay in memory
  std::atomic<bool> ready_{false};
  bool keeps_nothing_ = false;
  // Nothing was kept at the start, so the store is made when something is to be kept.
  std::atomic<bool> makes_later_{false};
  Mutex making_;
  // For the control thread: create a store, then write a checkpoint.
  std::atomic<bool> wanted_{false};
  std::atomic<bool> save_wanted_{false};
  std::atomic<bool> failed_{false};
  // Used by the control thread only: when it tries again after a failure, and the delay after that.
  std::chrono::steady_clock::time_point retry_at_;
  std::chrono::milliseconds retry_delay_ = CheckpointerOptions().retry_delay;
  std::atomic<uint8_t> asked_kind_{0};  // of the running checkpoint, 1 + Kind; 0: not requested
  // From CONFIG SET appendonly yes to the checkpoint with which the journal becomes valid.
  Mutex switch_mutex_;
  bool switching_ GUARDED_BY(switch_mutex_) = false;
  std::optional<uint64_t> switch_ticket_ GUARDED_BY(switch_mutex_);
  std::vector<std::function<void(const Status&)>> switch_listeners_ GUARDED_BY(switch_mutex_);
  Status switch_failure_ GUARDED_BY(switch_mutex_);  // not reported yet
  // The store is being closed: the value of unsaved_changes() from then on.
  mutable Mutex close_mutex_;
  bool closing_ GUARDED_BY(close_mutex_) = false;
  uint64_t unsaved_at_end_ GUARDED_BY(close_mutex_) = 0;
};

}  // namespace sluice
