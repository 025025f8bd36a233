// OutputBuffer: what a connection is to be sent: one buffer of which [0, sent) has left, [sent,
// sendable) may leave, and each segment says up to where the rest may leave once its lsn is
// durable. Gates never decrease, so a prefix leaves at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/unit/unit.h"
#include "net/io/server_state.h"

namespace sluice {

class OutputBuffer {
 public:
  // Replies are appended here. What gate() has not seen does not leave.
  ByteBuffer& bytes() { return bytes_; }
  const ByteBuffer& bytes() const { return bytes_; }
  // What has not left, and that part of it which may.
  size_t pending() const { return bytes_.size() - sent_; }
  Bytes sendable() const { return bytes_.view().substr(sent_, sendable_ - sent_); }
  bool has_sendable() const { return sent_ != sendable_; }

  // What has been appended since the last call may leave once `gate` is durable. True: it has to
  // wait for that.
  bool gate(Lsn gate, Lsn durable);
  bool is_gated() const { return !segments_.empty(); }
  // Nothing waits, or some of what waits may leave.
  bool is_released(Lsn durable) const {
    return segments_.empty() || segments_.front().gate <= durable;
  }
  // What was gated up to here may leave.
  void release(Lsn durable);
  // All that is there may leave at once.
  void open() { sendable_ = bytes_.size(); }
  // What waits will never leave.
  void drop_gated();
  void drop_gates() { segments_.clear(); }

  // So many bytes have left.
  void sent(size_t count) { sent_ += count; }
  // Gives back the memory of what has left.
  void compact();

  // --- Limits ---
  // More waits than a client of this class may leave unread, or has waited for too long.
  bool exceeds(const OutputLimit& limit);
  bool is_over_soft_limit() const { return soft_limit_since_ms_ != 0; }
  // So much waits that the client's further requests wait as well.
  bool is_paused() const { return paused_; }
  void pause_when_long() {
    if (pending() > kOutputPauseBytes) paused_ = true;
  }
  void resume_when_short() {
    if (paused_ && pending() <= kOutputResumeBytes) paused_ = false;
  }

 private:
  struct Segment {
    size_t end;
    Lsn gate;
  };

  ByteBuffer bytes_;
  size_t sent_ = 0;
  size_t sendable_ = 0;
  std::vector<Segment> segments_;
  int64_t soft_limit_since_ms_ = 0;
  bool paused_ = false;
};

}  // namespace sluice
