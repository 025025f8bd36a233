// Counted: counts one thing, or does not, in a counter shared by all threads.
#pragma once

#include <atomic>
#include <cstdint>

namespace sluice {

class Counted {
 public:
  explicit Counted(std::atomic<uint64_t>& counter) : counter_(counter) {}
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

  bool is_set() const { return set_; }
  void set(bool value) {
    if (value == set_) return;
    set_ = value;
    counter_.fetch_add(value ? 1 : ~uint64_t{0}, std::memory_order_relaxed);
  }

 private:
  std::atomic<uint64_t>& counter_;
  bool set_ = false;
};

}  // namespace sluice
