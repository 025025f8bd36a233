// What a request's head must be before it is parsed: the rules against request smuggling, looked at
// in the bytes themselves, since a parser may have smoothed them over.
//
// Pure functions.
#pragma once

#include <cstddef>
#include <string>

#include "net/http/message.h"

namespace sluice {

// Where the head of the request that begins here ends, behind its empty line; 0: not yet. The first
// `seen` bytes are known to hold no end.
size_t find_head_end(Bytes bytes, size_t seen = 0);

// Of a whole head: line ends are CRLF, no line continues the one before it, no blank stands before
// a colon, no NUL or control character anywhere. Empty: it is good; else what is wrong.
std::string check_head(Bytes head);

// Of the parsed head: one Host, one Content-Length, no Content-Length beside Transfer-Encoding, no
// Transfer-Encoding but chunked. The status is 0 if it is good.
struct HeadFault {
  unsigned status = 0;
  std::string detail;
};
HeadFault check_framing(const HttpRequest& request);

// Decodes a chunked body as it comes. Sizes are hexadecimal numbers of at most twelve digits on
// lines that end with CRLF; extensions and trailers are refused, since others read them otherwise.
class ChunkDecoder {
 public:
  enum class Result { kMore, kDone, kBad };
  // Takes what belongs to the body off `bytes`, and appends the data to `body`.
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
