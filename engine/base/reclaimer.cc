#include "engine/base/reclaimer.h"

#include <system_error>
#include <utility>

namespace sluice {

Reclaimer::~Reclaimer() NO_THREAD_SAFETY_ANALYSIS {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Reclaimer::take(std::vector<Retired>& retired) {
  pending_.fetch_add(retired.size(), std::memory_order_relaxed);
  {
    MutexLock lock(mutex_);
    if (!thread_.joinable()) {
      try {
        thread_ = Thread("sluice-reclaim", [this] { run(); });
      } catch (const std::system_error&) {
        free_all(retired);
        retired.clear();
        return;
      }
    }
    waiting_.insert(waiting_.end(), retired.begin(), retired.end());
  }
  retired.clear();
  changed_.notify_all();
}

void Reclaimer::wait() NO_THREAD_SAFETY_ANALYSIS {
  std::unique_lock<std::mutex> lock(mutex_.native());
  changed_.wait(lock, [this] { return pending() == 0; });
}

void Reclaimer::run() NO_THREAD_SAFETY_ANALYSIS {
  std::vector<Retired> retired;
  std::unique_lock<std::mutex> lock(mutex_.native());
  while (true) {
    changed_.wait(lock,
                  [this]() NO_THREAD_SAFETY_ANALYSIS { return stopping_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    std::swap(retired, waiting_);
    lock.unlock();
    free_all(retired);
    retired.clear();
    lock.lock();
    changed_.notify_all();
  }
}

void Reclaimer::free_all(const std::vector<Retired>& retired) {
  for (const Retired& one : retired) {
    one.free(one.object);
    freed_.fetch_add(1, std::memory_order_relaxed);
    pending_.fetch_sub(1, std::memory_order_relaxed);
  }
}

}  // namespace sluice
