#include "storage/log_frame.h"

#include <zstd.h>

#include <memory>

#include "storage/format.h"
#include "storage/native_numbers.h"

namespace sluice {
namespace {

constexpr int kCompressionLevel = 1;

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};

// Writes the compressed payload to `to`, which has the payload's size, and returns its length; 0 if
// it does not shrink. A context is some hundred kilobytes, so each thread keeps its own.
size_t compress(Bytes payload, char* to) {
  thread_local const std::unique_ptr<ZSTD_CCtx, FreeContext> context(ZSTD_createCCtx());
  if (context == nullptr || payload.empty()) return 0;
  // An error: it would not fit.
  const size_t size = ZSTD_compressCCtx(context.get(), to, payload.size() - 1, payload.data(),
                                        payload.size(), kCompressionLevel);
  return ZSTD_isError(size) != 0 ? 0 : size;
}

uint32_t frame_crc(Bytes frame) {
  return crc32c_extend(crc32c(frame.substr(kFrameHeaderBytes)), frame.data() + 4,
                       kFrameHeaderBytes - 4);
}

}  // namespace

std::string encode_frame(const FrameHeader& header, Bytes payload) {
  CHECK(payload.size() <= kMaxFramePayload);
  std::string frame(kFrameHeaderBytes + payload.size(), '\0');
  char* const to = frame.data();
  const size_t compressed = compress(payload, to + kFrameHeaderBytes);
  if (compressed == 0) {
    std::memcpy(to + kFrameHeaderBytes, payload.data(), payload.size());
  } else {
    frame.resize(kFrameHeaderBytes + compressed);
  }
  const uint8_t flags = static_cast<uint8_t>((header.last_of_commit ? kFrameLastOfCommit : 0) |
                                             (compressed == 0 ? 0 : kFrameZstd));
  store(frame.data() + 4, kFrameMagic);
  store(frame.data() + 8, kFrameVersion);
  store(frame.data() + 9, flags);
  store(frame.data() + 12, static_cast<uint32_t>(payload.size()));
  store(frame.data() + 16, header.epoch);
  store(frame.data() + 24, header.seq);
  store(frame.data() + 32, header.first_lsn);
  store(frame.data() + 40, header.last_lsn);
  store(frame.data() + 48, header.previous_chain);
  store(frame.data(), frame_crc(frame));
  return frame;
}

Result<Frame> decode_frame(Bytes frame) {
  if (frame.size() < kFrameHeaderBytes) return damaged("the frame is cut short");
  const char* const from = frame.data();
  if (load<uint32_t>(from + 4) != kFrameMagic) return damaged("this is not a frame");
  if (load<uint32_t>(from) != frame_crc(frame)) return damaged("checksum mismatch of the frame");
  if (load<uint8_t>(from + 8) != kFrameVersion) {
    return Status(StatusCode::kUnsupported, "unknown version of the frame");
  }
  const auto flags = load<uint8_t>(from + 9);
  if ((flags & ~kKnownFrameFlags) != 0) {
    return Status(StatusCode::kUnsupported, "unknown flags of the frame");
  }
  Frame result;
  result.header.last_of_commit = (flags & kFrameLastOfCommit) != 0;
  result.header.epoch = load<uint64_t>(from + 16);
  result.header.seq = load<uint64_t>(from + 24);
  result.header.first_lsn = load<uint64_t>(from + 32);
  result.header.last_lsn = load<uint64_t>(from + 40);
  result.header.previous_chain = load<uint32_t>(from + 48);
  const size_t size = load<uint32_t>(from + 12);
  const Bytes payload = frame.substr(kFrameHeaderBytes);
  if (size > kMaxFramePayload) return damaged("the frame's payload is too long");
  if ((flags & kFrameZstd) == 0) {
    if (payload.size() != size) return damaged("the frame's payload has another length");
    result.payload = payload;
    return result;
  }
  result.payload.resize(size);
  if (ZSTD_decompress(result.payload.data(), size, payload.data(), payload.size()) != size) {
    return damaged("the frame's payload cannot be decompressed");
  }
  return result;
}

}  // namespace sluice
