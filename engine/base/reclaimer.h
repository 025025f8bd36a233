// Reclaimer: frees large values on a thread of its own, so that no command waits for it.
//
// What a unit takes out of the keyspace belongs to it alone (Unit::retired). When the unit ends,
// the engine hands it over. The thread starts with the first such value; where the system gives no
// thread, values are freed at once by the caller.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/base/mutex.h"
#include "engine/base/thread.h"

namespace sluice {

// An object that nobody uses any more, and what frees it. Owns it only in name: without a
// Reclaimer it leaks.
struct Retired {
  void* object;
  void (*free)(void*);

  template <class Object>
  static Retired of(Object* object) {
    return {object, [](void* gone) { delete static_cast<Object*>(gone); }};
  }
};

// All members: any thread.
class Reclaimer {
 public:
  Reclaimer() = default;
  // Frees what is left.
  ~Reclaimer();
  Reclaimer(const Reclaimer&) = delete;
  Reclaimer& operator=(const Reclaimer&) = delete;

  // Takes all of them and leaves `retired` empty.
  void take(std::vector<Retired>& retired) EXCLUDES(mutex_);
  // Returns when everything that was taken before is freed.
  void wait() EXCLUDES(mutex_);
  // Objects that are not freed yet / that have been.
  uint64_t pending() const { return pending_.load(std::memory_order_relaxed); }
  uint64_t freed() const { return freed_.load(std::memory_order_relaxed); }

 private:
  void run() EXCLUDES(mutex_);
  void free_all(const std::vector<Retired>& retired);

  Mutex mutex_;
  std::condition_variable changed_;
  std::vector<Retired> waiting_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
  Thread thread_ GUARDED_BY(mutex_);
  std::atomic<uint64_t> pending_{0};
  std::atomic<uint64_t> freed_{0};
};

}  // namespace sluice
