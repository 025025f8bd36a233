#include "storage/prefetcher.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sluice {
namespace {

constexpr off_t kStep = off_t{1} << 20;
constexpr uint64_t kAhead = uint64_t{24} << 20;
constexpr uint64_t kStopped = UINT64_MAX;

}  // namespace

Prefetcher::Prefetcher(std::vector<std::string> files)
    : files_(std::move(files)), thread_([this] { run(); }) {}

Prefetcher::~Prefetcher() {
  stop();
  thread_.join();
}

void Prefetcher::advance(uint64_t bytes) {
  uint64_t position = position_.load();
  while (position != kStopped && !position_.compare_exchange_weak(position, position + bytes)) {
  }
  position_.notify_one();
}

void Prefetcher::stop() {
  position_.store(kStopped);
  position_.notify_one();
}

bool Prefetcher::wait_for_reader(uint64_t position) {
  while (true) {
    const uint64_t reader = position_.load();
    if (reader == kStopped) return false;
    if (position < reader + kAhead) return true;
    position_.wait(reader);
  }
}

void Prefetcher::run() {
  uint64_t position = 0;
  for (const std::string& name : files_) {
    const int file = ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    struct stat status {};
    bool going_on = true;
    if (::fstat(file, &status) == 0) {
      for (off_t at = 0; at < status.st_size && going_on; at += kStep) {
        going_on = wait_for_reader(position + static_cast<uint64_t>(at));
        if (going_on) ::posix_fadvise(file, at, kStep, POSIX_FADV_WILLNEED);
      }
      position += static_cast<uint64_t>(status.st_size);
    }
    ::close(file);
    if (!going_on) return;
  }
}

}  // namespace sluice
