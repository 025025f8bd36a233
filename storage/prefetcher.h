// Asks the kernel to read files ahead, in a thread of its own, so that recovery decodes one while
// the disk brings the next. A hint only: it reports no errors, and reading works without it.
#pragma once

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace sluice {

class Prefetcher {
 public:
  // In this order.
  explicit Prefetcher(std::vector<std::string> files);
  ~Prefetcher();  // leaves the rest out
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

 private:
  void run() const;

  const std::vector<std::string> files_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace sluice
