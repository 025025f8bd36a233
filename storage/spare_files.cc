#include "storage/spare_files.h"

#include <sys/eventfd.h>
#include <unistd.h>

namespace sluice {

SpareFiles::~SpareFiles() {
  for (const int file : files_) ::close(file);
}

bool SpareFiles::give_one() {
  MutexLock lock(mutex_);
  if (files_.empty()) return false;
  ::close(files_.back());
  files_.pop_back();
  missing_.store(kCount - files_.size(), std::memory_order_relaxed);
  return true;
}

bool SpareFiles::refill() {
  MutexLock lock(mutex_);
  while (files_.size() < kCount) {
    const int file = ::eventfd(0, EFD_CLOEXEC);  // needs no path
    if (file < 0) break;
    files_.push_back(file);
  }
  missing_.store(kCount - files_.size(), std::memory_order_relaxed);
  return files_.size() == kCount;
}

}  // namespace sluice
