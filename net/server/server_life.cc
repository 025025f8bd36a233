#include "net/server/server_life.h"

#include <spdlog/spdlog.h>

#include <mutex>
#include <utility>

#include "storage/group_commit.h"

namespace sluice {

namespace {

// There may be room at the next start. The supervisor makes it at once, again and again.
constexpr std::chrono::seconds kFullDiskRest{5};

}  // namespace

void ServerLife::request_stop(ShutdownMode mode) {
  MutexLock lock(mutex_);
  if (stop_requested_) return;
  stop_requested_ = true;
  stop_mode_ = mode;
  stopping_.store(true);
  wake_.notify_all();
}

ShutdownMode ServerLife::stop_mode() const {
  MutexLock lock(mutex_);
  return stop_mode_;
}

void ServerLife::finish(int exit_code, std::string failure) {
  MutexLock lock(mutex_);
  if (exit_code_ != 0) return;
  exit_code_ = exit_code;
  failure_ = std::move(failure);
}

bool ServerLife::refuse_start(const Status& reason) {
  spdlog::error("Fatal error: {}", reason.message());
  const bool is_full = reason.code() == StatusCode::kNoSpace;
  if (is_full && wait(kFullDiskRest, [] { return false; })) return false;
  finish(is_full ? kJournalFailedExitCode : 1, reason.message());
  return false;
}

void ServerLife::fail_journal() {
  MutexLock lock(mutex_);
  journal_failed_.store(true);
  stopping_.store(true);
  wake_.notify_all();
}

int ServerLife::exit_code() const {
  MutexLock lock(mutex_);
  return exit_code_;
}

std::string ServerLife::failure() const {
  MutexLock lock(mutex_);
  return failure_;
}

void ServerLife::note_ready() {
  MutexLock lock(mutex_);
  ready_ = true;
  wake_.notify_all();
}

void ServerLife::note_ended() {
  MutexLock lock(mutex_);
  ended_ = true;
  wake_.notify_all();
}

bool ServerLife::wait_until_ready() NO_THREAD_SAFETY_ANALYSIS {
  std::unique_lock<std::mutex> lock(mutex_.native());
  wake_.wait(lock, [this]() NO_THREAD_SAFETY_ANALYSIS { return ready_ || ended_; });
  return ready_;
}

void ServerLife::wake() {
  MutexLock lock(mutex_);
  wake_.notify_all();
}

bool ServerLife::wait(std::chrono::milliseconds patience,
                      const std::function<bool()>& has_work) NO_THREAD_SAFETY_ANALYSIS {
  std::unique_lock<std::mutex> lock(mutex_.native());
  const auto ends = [this]() NO_THREAD_SAFETY_ANALYSIS {
    return stop_requested_ || journal_failed_.load();
  };
  wake_.wait_for(lock, patience, [&] { return ends() || has_work(); });
  return ends();
}

}  // namespace sluice
