// A frame: a part of a commit, as it lies in the replicated log. The layout is in format.h.
//
// The frames of all epochs form one chain: each holds the chain's value before it, and
//   chain = crc32c(chain before it, bytes of the frame)
// so that a frame that was exchanged, lost or changed shows at the next one. Pure functions; any
// thread.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/bytes.h"
#include "engine/base/crc32c.h"
#include "engine/base/status.h"
#include "engine/ports/journal.h"

namespace sluice {

// Longer commits become several frames, so that the replicated log's memory stays small.
inline constexpr size_t kMaxFramePayload = size_t{256} << 10;

struct FrameHeader {
  bool last_of_commit = false;
  uint64_t epoch = 0;
  uint64_t seq = 0;
  Lsn first_lsn = 0;  // of the whole commit, as is last_lsn
  Lsn last_lsn = 0;
  uint32_t previous_chain = 0;

  bool operator==(const FrameHeader&) const = default;
};

// REQUIRES: at most kMaxFramePayload bytes of payload. They are compressed if that makes them
// shorter.
std::string encode_frame(const FrameHeader& header, Bytes payload);

struct Frame {
  FrameHeader header;
  std::string payload;
};
// Errors say what is wrong with the bytes; the caller knows where they are from.
Result<Frame> decode_frame(Bytes frame);

inline uint32_t extend_chain(uint32_t previous_chain, Bytes frame) {
  return crc32c_extend(previous_chain, frame.data(), frame.size());
}

}  // namespace sluice
