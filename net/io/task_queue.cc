#include "net/io/task_queue.h"

#include <boost/asio/post.hpp>
#include <chrono>
#include <future>
#include <memory>
#include <utility>

#include "net/io/thread_signals.h"

namespace sluice {

namespace {

// Limits for each turn: this many tasks, and none after this time. A task may be an HTTP request
// that takes milliseconds, and the sockets wait for all of them.
constexpr int kMaxTasksPerTurn = 64;
constexpr auto kMaxTime = std::chrono::microseconds(500);

}  // namespace

void TaskQueue::post(std::function<void()> task) {
  {
    MutexLock lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  signals_.raise(ThreadSignals::kTaskPosted);
}

bool TaskQueue::run_one() {
  std::function<void()> task;
  {
    MutexLock lock(mutex_);
    if (tasks_.empty()) return false;
    task = std::move(tasks_.front());
    tasks_.pop_front();
  }
  task();
  return true;
}

void TaskQueue::run() {
  using std::chrono::steady_clock;
  if (!expected_) return;
  const auto end = steady_clock::now() + kMaxTime;
  for (int i = 0; i < kMaxTasksPerTurn; ++i) {
    expected_ = run_one();
    if (!expected_ || steady_clock::now() >= end) return;
  }
}

size_t TaskQueue::run_all() {
  size_t count = 0;
  while (run_one()) ++count;
  return count;
}

void TaskQueue::finish(boost::asio::io_context& context) {
  // A handler may cancel or begin something in turn.
  do {
    // What Asio's thread had in hand when it took the first of these comes before the second.
    const auto passed = std::make_shared<std::promise<void>>();
    boost::asio::post(context, [passed, &context] {
      boost::asio::post(context, [passed] { passed->set_value(); });
    });
    passed->get_future().wait();
  } while (run_all() != 0);
}

}  // namespace sluice
