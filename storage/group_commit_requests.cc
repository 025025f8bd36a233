// GroupCommitJournal: requests for a sync and their callbacks.
#include <utility>

#include "storage/group_commit.h"

namespace sluice {

void GroupCommitJournal::when_synced(std::function<void(bool)> then) {
  if (attached() && !is_synced()) {
    MutexLock lock(mutex_);
    sync_requests_.push_back({last_lsn(), std::move(then)});
    sync_wanted_ = true;
    thread_waits_ = false;
    wake_.notify_one();
    return;
  }
  then(attached());
}

// Requests that cannot be answered yet wait for the checkpoint that makes the log solid.
void GroupCommitJournal::answer_sync_requests() {
  std::vector<std::pair<SyncRequest, bool>> answered;
  {
    MutexLock lock(mutex_);
    if (sync_requests_.empty() || failed()) return;
    const bool solid = solid_.load(std::memory_order_acquire);
    while (!sync_requests_.empty()) {
      const bool synced = solid && sync_requests_.front().lsn <= synced_lsn();
      if (!synced && attached()) break;
      answered.emplace_back(std::move(sync_requests_.front()), synced);
      sync_requests_.pop_front();
    }
  }
  for (const auto& [request, synced] : answered) request.then(synced);
}

}  // namespace sluice
