// Asks the kernel to read files ahead, in a thread of its own, so that recovery decodes one while
// the disk brings the next. It stays some way ahead of the reader and no more: a disk that has
// everything in its queue at once brings the first piece among the last. A hint only: it reports no
// errors, and reading works without it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace sluice {

class Prefetcher {
 public:
  // In this order.
  explicit Prefetcher(std::vector<std::string> files);
  ~Prefetcher();  // stop()
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // So many bytes more have been read, about. One thread.
  void advance(uint64_t bytes);
  // Leaves the rest out. Any thread; returns at once.
  void stop();

 private:
  void run();
  // Until the reader comes within reach of `position`, counted over all files; false: stop.
  bool wait_for_reader(uint64_t position);

  const std::vector<std::string> files_;
  // Bytes that the reader has read; UINT64_MAX: stop.
  std::atomic<uint64_t> position_{0};
  std::thread thread_;
};

}  // namespace sluice
