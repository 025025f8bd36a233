#include "net/http/head_check.h"

#include <algorithm>

#include "engine/base/characters.h"
#include "engine/base/hex.h"

namespace sluice {

namespace {

// 2^48 bytes exceed every limit of a body.
constexpr unsigned kMostSizeDigits = 12;

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < ' ' && c != '\t') || byte == 0x7f;
}

}  // namespace

size_t find_head_end(Bytes bytes, size_t seen) {
  // Other software accepts a bare line feed as a line end, so such a head counts as complete and is
  // then rejected.
  for (size_t at = bytes.find('\n', seen < 2 ? 0 : seen - 2); at != Bytes::npos;
       at = bytes.find('\n', at + 1)) {
    const Bytes rest = bytes.substr(at + 1);
    if (rest.starts_with("\r\n")) return at + 3;
    if (rest.starts_with("\n")) return at + 2;
  }
  return 0;
}

Status check_head(Bytes head) {
  size_t number = 0;
  while (!head.empty()) {
    const size_t end = head.find('\n');
    if (end == Bytes::npos || end == 0 || head[end - 1] != '\r')
      return invalid("a line that does not end with CRLF");
    const Bytes line = head.substr(0, end - 1);
    head.remove_prefix(end + 1);
    if (line.empty()) return head.empty() ? Status() : invalid("an empty line within the head");
    if (std::any_of(line.begin(), line.end(), is_control)) return invalid("a control character");
    if (number++ == 0) continue;
    if (line[0] == ' ' || line[0] == '\t')
      return invalid("a line that continues the one before it");
    const size_t colon = line.find(':');
    if (colon == Bytes::npos || colon == 0) return invalid("a line without a name");
    if (line[colon - 1] == ' ' || line[colon - 1] == '\t') return invalid("a blank before a colon");
  }
  return invalid("the head has no end");
}

HeadFault check_framing(const HttpRequest& request) {
  if (request.http_1_1 && request.header_count("host") != 1) {
    return {400, "Exactly one Host header is required."};
  }
  if (request.header_count("host") > 1) return {400, "Exactly one Host header is required."};
  const size_t lengths = request.header_count("content-length");
  const size_t encodings = request.header_count("transfer-encoding");
  if (lengths > 1) return {400, "There is more than one Content-Length."};
  if (lengths == 1) {
    const std::string& text = *request.header("content-length");
    if (text.empty() || !std::all_of(text.begin(), text.end(), is_digit)) {
      return {400, "Content-Length is not a number."};
    }
  }
  if (encodings == 0) return {};
  if (lengths != 0) return {400, "Content-Length and Transfer-Encoding exclude each other."};
  if (encodings > 1) return {400, "There is more than one Transfer-Encoding."};
  if (!request.http_1_1) return {400, "HTTP/1.0 has no Transfer-Encoding."};
  if (!equals_ignore_case(*request.header("transfer-encoding"), "chunked")) {
    return {501, "Only the transfer encoding chunked is supported."};
  }
  return {};
}

bool ChunkDecoder::take_size(char c) {
  if (c == '\r') {
    at_ = At::kSizeEnd;
    return digits_ != 0;
  }
  const int value = hex_value(c);
  if (value < 0 || ++digits_ > kMostSizeDigits) return false;
  size_ = size_ * 16 + static_cast<uint64_t>(value);
  return true;
}

// Handles a byte that is not data.
bool ChunkDecoder::take_byte(char c) {
  switch (at_) {
    case At::kSize:
      return take_size(c);
    case At::kSizeEnd:
      at_ = size_ == 0 ? At::kLastEnd : At::kData;
      return c == '\n';
    case At::kDataEnd:
      at_ = At::kDataLineFeed;
      return c == '\r';
    case At::kDataLineFeed:
      at_ = At::kSize;
      size_ = 0;
      digits_ = 0;
      return c == '\n';
    case At::kLastEnd:
      at_ = At::kLastLineFeed;
      return c == '\r';
    case At::kLastLineFeed:
      at_ = At::kDone;
      return c == '\n';
    case At::kData:
    case At::kDone:
      break;
  }
  return false;
}

ChunkDecoder::Result ChunkDecoder::take(Bytes& bytes, std::string& body) {
  while (!bytes.empty() && at_ != At::kDone) {
    if (at_ == At::kData) {
      const size_t count = std::min<uint64_t>(size_, bytes.size());
      body += bytes.substr(0, count);
      bytes.remove_prefix(count);
      size_ -= count;
      if (size_ == 0) at_ = At::kDataEnd;
      continue;
    }
    const char c = bytes[0];
    bytes.remove_prefix(1);
    if (!take_byte(c)) return Result::kBad;
  }
  return at_ == At::kDone ? Result::kDone : Result::kMore;
}

}  // namespace sluice
