// ServerLife: the stages in the life of a server: ready, asked to stop or failed, ended. Any
// thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <string>

#include "engine/base/mutex.h"
#include "engine/base/status.h"
#include "engine/ports/server_port.h"

namespace sluice {

class ServerLife {
 public:
  // `stopping` is set as soon as the shutdown begins (ServerState::stopping).
  explicit ServerLife(std::atomic<bool>& stopping) : stopping_(stopping) {}

  // --- Shutdown ---
  // Only the first call has an effect.
  void request_stop(ShutdownMode mode);
  ShutdownMode stop_mode() const;
  // Ends by itself with this reason; only the first call with an exit code has an effect.
  void finish(int exit_code, std::string failure);
  // The data cannot be loaded, which is logged. Returns false. If the disk is full it returns
  // later, and the supervisor is to try again.
  bool refuse_start(const Status& reason);
  void fail_journal();
  bool journal_failed() const { return journal_failed_.load(); }
  int exit_code() const;
  // Empty if it was asked to stop.
  std::string failure() const;

  void note_ready();
  void note_ended();
  // Blocks until the server is ready (true) or has ended (false).
  bool wait_until_ready();

  // --- The control thread ---
  // Wakes it, because there is work.
  void wake();
  // Waits until woken, at most this long. Returns whether the server should stop.
  bool wait(std::chrono::milliseconds patience, const std::function<bool()>& has_work);

 private:
  std::atomic<bool>& stopping_;
  mutable Mutex mutex_;
  std::condition_variable wake_;
  bool ready_ GUARDED_BY(mutex_) = false;
  bool stop_requested_ GUARDED_BY(mutex_) = false;
  bool ended_ GUARDED_BY(mutex_) = false;
  ShutdownMode stop_mode_ GUARDED_BY(mutex_) = ShutdownMode::kDefault;
  int exit_code_ GUARDED_BY(mutex_) = 0;
  std::string failure_ GUARDED_BY(mutex_);
  std::atomic<bool> journal_failed_{false};
};

}  // namespace sluice
