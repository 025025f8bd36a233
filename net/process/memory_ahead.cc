#include "net/process/memory_ahead.h"

#include <sys/mman.h>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <string>
#include <system_error>

#include "engine/base/mutex.h"
#include "engine/base/thread.h"
#include "net/process/jemalloc.h"

namespace sluice {

namespace {

// The most that jemalloc requests at once; more would be resident without use at the end.
constexpr size_t kPieceBytes = size_t{16} << 20;
constexpr size_t kQuietBytes = size_t{64} << 20;
// Address space is reserved in steps this large, so that adjacent pieces can become one extent.
constexpr size_t kRegionBytes = size_t{1} << 30;
// One madvise() call holds the lock of the address space until it has taken its faults.
constexpr size_t kStepBytes = size_t{1} << 20;
// The largest alignment that allocating whole pieces preserves; jemalloc asks for pages.
constexpr size_t kAlignment = 4096;

// One per process. Never destroyed, because another thread of the arena may be in the hook while it
// is being removed.
class Ahead {
 public:
  // Returns false if jemalloc is not linked, or the hook is in use already.
  bool take() EXCLUDES(mutex_);
  void put_back() EXCLUDES(mutex_);

 private:
  static void* allocate(extent_hooks_t* hooks, void* wanted, size_t size, size_t alignment,
                        bool* zero, bool* commit, unsigned arena);
  void* piece(size_t size) EXCLUDES(mutex_);
  bool reserve() REQUIRES(mutex_);
  void leave_region() REQUIRES(mutex_);
  void start_thread() EXCLUDES(mutex_);
  void end_thread() EXCLUDES(mutex_);
  void run() EXCLUDES(mutex_);
  static bool install(const std::string& arena, extent_hooks_t* hooks, size_t grow_limit);

  // Must be the first member: jemalloc passes its address to the hook.
  extent_hooks_t hooks_{};
  extent_hooks_t* before_ = nullptr;  // set once; the same for every arena
  size_t grow_limit_before_ = 0;
  std::string arena_;

  Mutex mutex_;
  std::condition_variable changed_;
  bool active_ GUARDED_BY(mutex_) = false;
  size_t quiet_left_ GUARDED_BY(mutex_) = 0;
  // In the region, [next_, end_) is not handed out yet, and [next_, touched_) has its pages.
  char* next_ GUARDED_BY(mutex_) = nullptr;
  char* touched_ GUARDED_BY(mutex_) = nullptr;
  char* end_ GUARDED_BY(mutex_) = nullptr;
  bool touching_ GUARDED_BY(mutex_) = false;  // the thread is working in the region
  Thread thread_;
};

Ahead& ahead() {
  static auto* const one = new Ahead();
  return *one;
}

bool Ahead::install(const std::string& arena, extent_hooks_t* hooks, size_t grow_limit) {
  return mallctl((arena + ".retain_grow_limit").c_str(), nullptr, nullptr, &grow_limit,
                 sizeof(grow_limit)) == 0 &&
         mallctl((arena + ".extent_hooks").c_str(), nullptr, nullptr, &hooks, sizeof(hooks)) == 0;
}

bool Ahead::take() {
  if (mallctl == nullptr) return false;
  {
    MutexLock lock(mutex_);
    if (active_) return false;
    active_ = true;
    quiet_left_ = kQuietBytes;
  }
  unsigned arena = 0;
  size_t length = sizeof(arena);
  bool ok = mallctl("thread.arena", &arena, &length, nullptr, 0) == 0;
  arena_ = "arena." + std::to_string(arena);
  length = sizeof(before_);
  ok = ok && mallctl((arena_ + ".extent_hooks").c_str(), &before_, &length, nullptr, 0) == 0;
  length = sizeof(grow_limit_before_);
  ok = ok && mallctl((arena_ + ".retain_grow_limit").c_str(), &grow_limit_before_, &length, nullptr,
                     0) == 0;
  // Start the thread before installing the hook, which is useless without it.
  if (ok) start_thread();
  if (ok) {
    hooks_ = *before_;
    hooks_.alloc = allocate;
    ok = install(arena_, &hooks_, kPieceBytes);
  }
  if (!ok) end_thread();
  return ok;
}

void Ahead::start_thread() {
  try {
    thread_ = Thread("sluice-memory", [this] { run(); });
  } catch (const std::system_error&) {
    end_thread();
    throw;
  }
}

void Ahead::end_thread() {
  {
    MutexLock lock(mutex_);
    active_ = false;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Ahead::put_back() {
  install(arena_, before_, grow_limit_before_);
  end_thread();
  MutexLock lock(mutex_);
  leave_region();
}

void* Ahead::allocate(extent_hooks_t* hooks, void* wanted, size_t size, size_t alignment,
                      bool* zero, bool* commit, unsigned arena) {
  auto* self = reinterpret_cast<Ahead*>(hooks);
  if (wanted == nullptr && alignment <= kAlignment && size <= kPieceBytes) {
    if (void* given = self->piece(size)) {
      *zero = true;
      *commit = true;
      return given;
    }
  }
  return self->before_->alloc(self->before_, wanted, size, alignment, zero, commit, arena);
}

void* Ahead::piece(size_t size) {
  MutexLock lock(mutex_);
  if (!active_) return nullptr;
  if (quiet_left_ != 0) {
    quiet_left_ -= std::min(quiet_left_, size);
    return nullptr;
  }
  if (static_cast<size_t>(end_ - next_) < size) {
    std::unique_lock<std::mutex> native(mutex_.native(), std::adopt_lock);
    while (touching_) changed_.wait(native);
    native.release();
    if (!reserve()) return nullptr;
  }
  char* given = next_;
  next_ += size;
  touched_ = std::max(touched_, next_);
  changed_.notify_all();
  return given;
}

bool Ahead::reserve() {
  leave_region();
  void* mapped = ::mmap(nullptr, kRegionBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return false;
  next_ = touched_ = static_cast<char*>(mapped);
  end_ = next_ + kRegionBytes;
  return true;
}

void Ahead::leave_region() {
  if (next_ != end_) ::munmap(next_, static_cast<size_t>(end_ - next_));
  next_ = touched_ = end_ = nullptr;
}

void Ahead::run() {
  MutexLock lock(mutex_);
  std::unique_lock<std::mutex> native(mutex_.native(), std::adopt_lock);
  while (active_) {
    char* const stop = next_ + std::min(kPieceBytes, static_cast<size_t>(end_ - next_));
    if (touched_ >= stop) {
      changed_.wait(native);
      continue;
    }
    char* const from = touched_;
    touched_ += std::min(kStepBytes, static_cast<size_t>(stop - from));
    const auto bytes = static_cast<size_t>(touched_ - from);
    touching_ = true;
    native.unlock();
    // An allocation from these pages in the meantime takes the faults itself.
    const bool done = ::madvise(from, bytes, MADV_POPULATE_WRITE) == 0;
    native.lock();
    touching_ = false;
    changed_.notify_all();
    if (!done) break;  // not supported by the kernel, or no memory
  }
  native.release();
}

}  // namespace

MemoryAhead::MemoryAhead() : taken_(ahead().take()) {}

MemoryAhead::~MemoryAhead() {
  if (taken_) ahead().put_back();
}

}  // namespace sluice
