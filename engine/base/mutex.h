// A mutex with clang's thread-safety annotations, and its scoped lock.
//
// std::mutex carries no annotations in libstdc++, so the analysis (preset `syntax`) could not see
// it. Lock order: shards by ascending index (or by try-lock), then one of the other mutexes.
// ARCHITECTURE.md, "Locks and ownership", lists them.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>

#if defined(__clang__)
#define SLUICE_ANNOTATE(x) __attribute__((x))
#else
#define SLUICE_ANNOTATE(x)
#endif

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SLUICE_THREAD_SANITIZER 1
#endif
#endif

#define CAPABILITY(x) SLUICE_ANNOTATE(capability(x))
#define SCOPED_CAPABILITY SLUICE_ANNOTATE(scoped_lockable)
#define GUARDED_BY(x) SLUICE_ANNOTATE(guarded_by(x))
#define REQUIRES(...) SLUICE_ANNOTATE(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) SLUICE_ANNOTATE(locks_excluded(__VA_ARGS__))
#define ACQUIRE(...) SLUICE_ANNOTATE(acquire_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) SLUICE_ANNOTATE(try_acquire_capability(__VA_ARGS__))
#define RELEASE(...) SLUICE_ANNOTATE(release_capability(__VA_ARGS__))
#define ASSERT_CAPABILITY(x) SLUICE_ANNOTATE(assert_capability(x))
#define RETURN_CAPABILITY(x) SLUICE_ANNOTATE(lock_returned(x))
#define NO_THREAD_SAFETY_ANALYSIS SLUICE_ANNOTATE(no_thread_safety_analysis)

namespace sluice {

class CAPABILITY("mutex") Mutex {
 public:
  void lock() ACQUIRE() { mutex_.lock(); }
  bool try_lock() TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  void unlock() RELEASE() { mutex_.unlock(); }

  // Tells the analysis that the caller holds this lock where it cannot deduce that: sets of shards
  // are locked by index at run time.
  void assert_held() const ASSERT_CAPABILITY(this) {}

  // For std::condition_variable, which requires std::mutex.
  std::mutex& native() RETURN_CAPABILITY(this) { return mutex_; }

 private:
  std::mutex mutex_;
};

// A mutex whose wait can have a time limit: a script may hold a shard for as long as it likes.
class CAPABILITY("mutex") TimedMutex {
 public:
  void lock() ACQUIRE() { mutex_.lock(); }
  bool try_lock() TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  bool try_lock_for_ms(int64_t wait_ms) TRY_ACQUIRE(true) {
    const std::chrono::milliseconds wait(wait_ms);
#ifdef SLUICE_THREAD_SANITIZER
    // clang 16's ThreadSanitizer does not intercept the call that try_lock_for makes
    // (pthread_mutex_clocklock) and would report false races.
    return mutex_.try_lock_until(std::chrono::system_clock::now() + wait);
#else
    return mutex_.try_lock_for(wait);
#endif
  }
  void unlock() RELEASE() { mutex_.unlock(); }
  void assert_held() const ASSERT_CAPABILITY(this) {}

 private:
  std::timed_mutex mutex_;
};

template <class AnyMutex>
class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(AnyMutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  AnyMutex& mutex_;
};

}  // namespace sluice
