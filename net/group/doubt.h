// Doubt: what would end this node is believed when two reads of the log say the same, kAgainMs
// apart. etcd has had faults by which one read was old (etcd's issue 20418).
//
// Used by the group's thread. Times are milliseconds of CLOCK_BOOTTIME.
#pragma once

#include <cstdint>
#include <string>

namespace sluice {

class Doubt {
 public:
  static constexpr int64_t kAgainMs = 1000;

  // A read has found this. True: as one before, long enough ago.
  bool is_sure(const std::string& why, int64_t now_ms) {
    if (why_ != why) {
      why_ = why;
      since_ms_ = now_ms;
    }
    return now_ms - since_ms_ >= kAgainMs;
  }
  // A read has found nothing wrong.
  void clear() { why_.clear(); }
  // When the next read decides.
  int64_t due_ms() const { return since_ms_ + kAgainMs; }

 private:
  std::string why_;
  int64_t since_ms_ = 0;
};

}  // namespace sluice
