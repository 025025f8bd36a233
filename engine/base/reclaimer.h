// Reclaimer: frees large values on a thread of its own, so that no command waits for it.
//
// Values that a unit takes out of the keyspace belong to it alone (Unit::retired). When the unit
// ends, the engine hands them over. The thread starts with the first value. If the system refuses a
// thread, the caller frees the values at once.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <vector>

#include "engine/base/mutex.h"
#include "engine/base/thread.h"

namespace sluice {

// An unused object and the function that frees it. The Reclaimer must take it: the struct has no
// destructor, so the object leaks otherwise.
struct Retired {
  void* object;
  void (*free)(void*);

  template <class Object>
  static Retired of(Object* object) {
    return {object, [](void* gone) { delete static_cast<Object*>(gone); }};
  }
};

// Thread-safe.
class Reclaimer {
 public:
  Reclaimer() = default;
  // Frees the remaining objects.
  ~Reclaimer();
  Reclaimer(const Reclaimer&) = delete;
  Reclaimer& operator=(const Reclaimer&) = delete;

  // Takes all objects and leaves `retired` empty.
  void take(std::vector<Retired>& retired) EXCLUDES(mutex_);
  // Returns when everything that was taken before has been freed.
  void wait() EXCLUDES(mutex_);
  // The number of objects that are still to be freed, and of those that have been.
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
