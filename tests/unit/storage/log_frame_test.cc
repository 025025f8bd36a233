// Frames of the replicated log: they round-trip, and truncation and flipped bits are detected.
#include "storage/log_frame.h"

#include <random>
#include <string>

#include "storage/format.h"
#include "tests/support/test.h"

using namespace sluice;

namespace {

std::string random_bytes(size_t size) {
  std::mt19937 random(static_cast<uint32_t>(size));
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

FrameHeader some_header() { return {true, 7, uint64_t{1} << 40, 100, 120, 0xdeadbeef}; }

}  // namespace

TEST_CASE("a frame holds its header and its payload") {
  for (const bool last : {false, true}) {
    for (const std::string& payload :
         {std::string(), std::string("x"), std::string(5000, 'a'), random_bytes(5000),
          random_bytes(kMaxFramePayload), std::string(kMaxFramePayload, 'b')}) {
      FrameHeader header = some_header();
      header.last_of_commit = last;
      const std::string bytes = encode_frame(header, payload);
      const Result<Frame> frame = decode_frame(bytes);
      REQUIRE_MESSAGE(frame.ok(), frame.status().message());
      CHECK(frame->header == header);
      CHECK(frame->payload == payload);
    }
  }
}

TEST_CASE("a frame is compressed only if that makes it shorter") {
  CHECK(encode_frame(some_header(), std::string(5000, 'a')).size() < 200);
  CHECK(encode_frame(some_header(), random_bytes(5000)).size() == kFrameHeaderBytes + 5000);
  CHECK(encode_frame(some_header(), "ab").size() == kFrameHeaderBytes + 2);
}

TEST_CASE("a frame that is cut or changed anywhere is refused in words") {
  for (const std::string& payload : {std::string(300, 'a'), random_bytes(300)}) {
    const std::string bytes = encode_frame(some_header(), payload);
    for (size_t size = 0; size < bytes.size(); ++size) {
      CHECK(!decode_frame(Bytes(bytes).substr(0, size)).ok());
    }
    CHECK(!decode_frame(bytes + "x").ok());
    for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      std::string changed = bytes;
      changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ 1 << bit % 8);
      const Result<Frame> frame = decode_frame(changed);
      REQUIRE(!frame.ok());
      CHECK(!frame.status().message().empty());
    }
  }
}

TEST_CASE("frames of a later version and with unknown flags are told from damage") {
  const auto reseal = [](std::string frame) {
    const uint32_t crc = crc32c_extend(crc32c(Bytes(frame).substr(kFrameHeaderBytes)),
                                       frame.data() + 4, kFrameHeaderBytes - 4);
    std::memcpy(frame.data(), &crc, 4);
    return frame;
  };
  std::string later = encode_frame(some_header(), "payload");
  later[8] = kFrameVersion + 1;
  CHECK(decode_frame(reseal(later)).status().code() == StatusCode::kUnsupported);
  std::string flags = encode_frame(some_header(), "payload");
  flags[9] = static_cast<char>(flags[9] | 0x80);
  CHECK(decode_frame(reseal(flags)).status().code() == StatusCode::kUnsupported);
}

TEST_CASE("the chain depends on all frames before") {
  const std::string a = encode_frame(some_header(), "a");
  const std::string b = encode_frame(some_header(), "b");
  CHECK(extend_chain(0, a) != extend_chain(0, b));
  CHECK(extend_chain(extend_chain(0, a), b) != extend_chain(extend_chain(0, b), b));
  CHECK(extend_chain(extend_chain(0, a), b) == crc32c(a + b));
}
