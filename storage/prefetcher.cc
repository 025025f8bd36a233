#include "storage/prefetcher.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sluice {
namespace {

constexpr off_t kStep = off_t{4} << 20;

}  // namespace

Prefetcher::Prefetcher(std::vector<std::string> files)
    : files_(std::move(files)), thread_([this] { run(); }) {}

Prefetcher::~Prefetcher() {
  stopping_ = true;
  thread_.join();
}

void Prefetcher::run() const {
  for (const std::string& name : files_) {
    const int file = ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    struct stat status {};
    if (::fstat(file, &status) == 0) {
      for (off_t at = 0; at < status.st_size && !stopping_; at += kStep) {
        ::posix_fadvise(file, at, kStep, POSIX_FADV_WILLNEED);
      }
    }
    ::close(file);
  }
}

}  // namespace sluice
