#include "net/io/output_buffer.h"

#include "net/process/clocks.h"

namespace sluice {

namespace {

constexpr size_t kKeptOutputBytes = 16U << 10;
constexpr size_t kCompactBytes = 64U << 10;

}  // namespace

bool OutputBuffer::gate(Lsn gate, Lsn durable) {
  const size_t covered = segments_.empty() ? sendable_ : segments_.back().end;
  if (bytes_.size() == covered) return false;
  if (segments_.empty() && gate <= durable) {
    sendable_ = bytes_.size();
    return false;
  }
  if (!segments_.empty() && gate <= segments_.back().gate) {
    segments_.back().end = bytes_.size();
    return false;
  }
  segments_.push_back({bytes_.size(), gate});
  return true;
}

void OutputBuffer::release(Lsn durable) {
  if (segments_.empty()) return;
  size_t passed = 0;
  while (passed < segments_.size() && segments_[passed].gate <= durable) ++passed;
  if (passed == 0) return;
  sendable_ = segments_[passed - 1].end;
  segments_.erase(segments_.begin(), segments_.begin() + static_cast<std::ptrdiff_t>(passed));
}

void OutputBuffer::drop_gated() {
  segments_.clear();
  bytes_.resize(sendable_);
}

void OutputBuffer::compact() {
  if (sent_ == bytes_.size()) {
    bytes_.clear();
    bytes_.shrink(kKeptOutputBytes);
    sent_ = 0;
    sendable_ = 0;
    return;
  }
  if (sent_ < kCompactBytes || sent_ < bytes_.size() / 2) return;
  bytes_.erase_front(sent_);
  sendable_ -= sent_;
  for (Segment& segment : segments_) segment.end -= sent_;
  sent_ = 0;
}

bool OutputBuffer::exceeds(const OutputLimit& limit) {
  const uint64_t hard = limit.hard_bytes.load(std::memory_order_relaxed);
  const uint64_t soft = limit.soft_bytes.load(std::memory_order_relaxed);
  const bool over = hard != 0 && pending() > hard;
  if (soft == 0 || pending() <= soft) {
    soft_limit_since_ms_ = 0;
    return over;
  }
  const int64_t now_ms = Clocks::steady_ms();
  if (soft_limit_since_ms_ == 0) soft_limit_since_ms_ = now_ms;
  const int64_t soft_s = limit.soft_s.load(std::memory_order_relaxed);
  return over || now_ms - soft_limit_since_ms_ > soft_s * 1000;
}

}  // namespace sluice
