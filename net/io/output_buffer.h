// OutputBuffer: the output of a connection in one buffer: [0, sent) has been sent, [sent, sendable)
// may be sent, and each segment says up to where the rest may be sent once its lsn is durable.
// Gates never decrease, so always a prefix becomes sendable.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/unit/unit.h"
#include "net/io/server_state.h"

namespace sluice {

class OutputBuffer {
 public:
  // Replies are appended here. Bytes that gate() has not seen are not sent.
  ByteBuffer& bytes() { return bytes_; }
  const ByteBuffer& bytes() const { return bytes_; }
  // Unsent bytes, and the part of them that may be sent.
  size_t pending() const { return bytes_.size() - sent_; }
  Bytes sendable() const { return bytes_.view().substr(sent_, sendable_ - sent_); }
  bool has_sendable() const { return sent_ != sendable_; }

  // The bytes appended since the last call may be sent when `gate` is durable. Returns whether they
  // have to wait for that.
  bool gate(Lsn gate, Lsn durable);
  bool is_gated() const { return !segments_.empty(); }
  // Nothing is waiting, or some of it may be sent.
  bool is_released(Lsn durable) const {
    return segments_.empty() || segments_.front().gate <= durable;
  }
  // Bytes gated up to here may be sent.
  void release(Lsn durable);
  // Everything present may be sent at once.
  void open() { sendable_ = bytes_.size(); }
  // Drops what is waiting.
  void drop_gated();
  void drop_gates() { segments_.clear(); }

  // This many bytes have been sent.
  void sent(size_t count) {
    // As if pushes and replies were mixed evenly: where each lies is not kept.
    if (pushed_ != 0 && count != 0) pushed_ -= std::min(pushed_, pushed_ * count / pending());
    sent_ += count;
  }
  // Frees the memory of sent bytes.
  void compact();

  // --- Limits ---
  // So many of the appended bytes are not replies: other clients decide how many come.
  void note_pushed(size_t count) { pushed_ += count; }
  // Whether most of what is pending are such bytes.
  bool holds_mostly_pushes() const { return pushed_ > pending() / 2; }
  // Whether more is pending than a client of this class may leave unread, or for too long.
  bool exceeds(const OutputLimit& limit);
  bool is_over_soft_limit() const { return soft_limit_since_ms_ != 0; }
  // Whether so much is pending that the client's further requests must wait.
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
  size_t pushed_ = 0;  // bytes of pushes among the pending ones, about
  int64_t soft_limit_since_ms_ = 0;
  bool paused_ = false;
};

}  // namespace sluice
