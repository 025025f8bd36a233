// ServerLife: how far the life of a server has come: it becomes ready, is asked to stop or fails,
// and has ended. Any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <string>

#include "engine/base/mutex.h"
#include "engine/ports/server_port.h"

namespace sluice {

class ServerLife {
 public:
  // `stopping` is set as soon as the end begins (ServerState::stopping).
  explicit ServerLife(std::atomic<bool>& stopping) : stopping_(stopping) {}

  // --- The end ---
  // Only the first call counts.
  void request_stop(ShutdownMode mode);
  ShutdownMode stop_mode() const;
  // Why it ends by itself; only the first call with an exit code counts.
  void finish(int exit_code, std::string failure);
  void fail_journal();
  bool journal_failed() const { return journal_failed_.load(); }
  int exit_code() const;
  // Empty if it was asked to end.
  std::string failure() const;

  void note_ready();
  void note_ended();
  // Blocks until it serves (true) or has ended (false).
  bool wait_until_ready();

  // --- The control thread ---
  // Something waits for it.
  void wake();
  // Until it is woken, at most so long. True: the server is to end.
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
