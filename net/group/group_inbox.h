// GroupInbox: what other threads have to tell the group's thread, in order.
//
// Threads: post and wake by any; the rest by the group's thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <utility>
#include <vector>

#include "engine/base/mutex.h"

namespace sluice {

class GroupInbox {
 public:
  using Task = std::function<void()>;

  void post(Task task) {
    {
      MutexLock lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    wake_.notify_one();
  }

  // Runs what was posted, also what that posts. True if there was anything.
  bool run() {
    bool ran = false;
    while (true) {
      std::vector<Task> tasks;
      {
        MutexLock lock(mutex_);
        tasks.swap(tasks_);
      }
      if (tasks.empty()) return ran;
      for (const Task& task : tasks) task();
      ran = true;
    }
  }

  // Until something is posted, at most so long.
  void wait(std::chrono::milliseconds patience) NO_THREAD_SAFETY_ANALYSIS {
    std::unique_lock<std::mutex> lock(mutex_.native());
    wake_.wait_for(lock, patience, [this]() NO_THREAD_SAFETY_ANALYSIS { return !tasks_.empty(); });
  }

 private:
  Mutex mutex_;
  std::condition_variable wake_;
  std::vector<Task> tasks_ GUARDED_BY(mutex_);
};

}  // namespace sluice
