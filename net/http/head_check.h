// Checks of a request's head before it is parsed: the rules against request smuggling. They examine
// the raw bytes, because a parser may already have normalized them.
//
// Pure functions.
#pragma once

#include <cstddef>
#include <string>

#include "engine/base/status.h"
#include "net/http/message.h"

namespace sluice {

// The end of the head that begins here, after its empty line; 0 if it is incomplete. The first
// `seen` bytes are known to hold no end.
size_t find_head_end(Bytes bytes, size_t seen = 0);

// Checks a complete head: line ends are CRLF; no line continues the previous one; no blank before a
// colon; no NUL or control character.
Status check_head(Bytes head);

// Checks the parsed head: one Host, at most one Content-Length, not both Content-Length and
// Transfer-Encoding, no Transfer-Encoding except chunked. The status is 0 if it is valid.
struct HeadFault {
  unsigned status = 0;
  std::string detail;
};
HeadFault check_framing(const HttpRequest& request);

// Decodes a chunked body incrementally. Sizes are hexadecimal numbers of at most twelve digits on
// lines that end with CRLF. Extensions and trailers are rejected, because other software interprets
// them differently.
class ChunkDecoder {
 public:
  enum class Result { kMore, kDone, kBad };
  // Removes the body's bytes from `bytes`, and appends the data to `body`.
  Result take(Bytes& bytes, std::string& body);

 private:
  enum class At { kSize, kSizeEnd, kData, kDataEnd, kDataLineFeed, kLastEnd, kLastLineFeed, kDone };
  bool take_size(char c);
  bool take_byte(char c);

  At at_ = At::kSize;
  uint64_t size_ = 0;
  unsigned digits_ = 0;
};

}  // namespace sluice
