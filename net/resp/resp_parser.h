// The incremental parser of client requests: RESP arrays of bulk strings ("multibulk") and inline
// command lines, freely mixed on one connection, with the limits and error texts of Redis 7.0.15.
//
// Threads: none of its own; one parser belongs to one session and is used by its thread only.
//
// Ownership: the session owns a contiguous query buffer. Arguments are views into it (zero copy),
// valid until the session changes, moves or frees those bytes. Quoted inline arguments are decoded
// in place, so the buffer must be writable.
//
// Use by a session, where `at` is the offset of the next request in its buffer:
//
//   for (;;) {
//     RespParser::Result r = parser.parse({data + at, size - at}, args);
//     kRequest   run args; at += r.bytes
//     kSkipped   nothing to run (empty line, *0); at += r.bytes
//     kNeedMore  read at least r.bytes more bytes, then call again. Bytes from `at` on must be
//                kept, yet the buffer may move: between calls the parser keeps only offsets
//     kError     send "-ERR " + parser.error(), then close
//     kHttp      log a possible cross-protocol scripting attack and close, with no reply
//   }
//
// Invariants:
//  1. Any split of the input into calls gives the same requests, in the same order, and the same
//     final outcome as the whole input in one call.
//  2. No byte of a header or line is examined more than twice, and the content of a bulk never, so
//     the cost is linear for pieces of any size.
//  3. Memory is never allocated because of a length header; the parser's memory follows the bytes
//     that have arrived. A session may reserve r.bytes, which the limits bound.
//  4. After kError or kHttp the parser stays in that state until reset().
//
// Limits are read when a header is parsed. A session that parses ahead of execution must not parse
// past AUTH or HELLO while its client is unauthenticated, or the stricter limits would apply to
// what follows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/base/bytes.h"

namespace sluice {

struct RespLimits {
  // Redis 7.0 takes INT_MAX arguments (its documentation still says 1024 * 1024).
  int64_t max_args = 2147483647;
  int64_t max_bulk_bytes = 512LL * 1024 * 1024;  // proto-max-bulk-len
  // The longest inline line, and the longest count line ("*3", "$5"), up to its line end.
  size_t max_inline_bytes = 64 * 1024;
  // False until AUTH if a password is required; then the two limits below apply as well.
  bool authenticated = true;

  static constexpr int64_t kUnauthenticatedMaxArgs = 10;
  static constexpr int64_t kUnauthenticatedMaxBulkBytes = 16384;
};

class RespParser {
 public:
  enum class Outcome : uint8_t { kNeedMore, kRequest, kSkipped, kError, kHttp };

  struct Result {
    Outcome outcome;
    // kRequest, kSkipped: bytes consumed from the start of the span.
    // kNeedMore: at least this many bytes are missing after the end of the span (never 0).
    size_t bytes;
  };

  RespParser() = default;
  explicit RespParser(const RespLimits& limits) { set_limits(limits); }

  // Parses the request that begins at buffer[0]; `args` is replaced. After kNeedMore the next call
  // must bring the same bytes and more. Anything but kRequest leaves `args` empty.
  Result parse(std::span<char> buffer, std::vector<Bytes>& args) {
    args.clear();
    return parse_append(buffer, args);
  }

  // The same, but appends to `args`, for sessions that gather a batch in one vector. Anything but
  // kRequest leaves `args` as it was.
  Result parse_append(std::span<char> buffer, std::vector<Bytes>& args);

  // After kNeedMore: offset (from the start of the request) and length of the bulk whose content is
  // incomplete; length 0 if a line is incomplete.
  struct Argument {
    size_t offset;
    size_t length;
  };
  Argument awaited_bulk() const {
    return {position_, bulk_length_ < 0 ? 0 : static_cast<size_t>(bulk_length_)};
  }

  // The complete bulks before it.
  std::span<const Argument> complete_bulks() const { return done_; }

  // The text of the last kError, without "-ERR ". It contains no carriage return or line feed.
  const std::string& error() const { return error_; }

  // Forgets a half-parsed request and any error.
  void reset();

  const RespLimits& limits() const { return limits_; }
  void set_limits(const RespLimits& limits);

  // True while a request has begun and is not complete.
  bool mid_request() const { return position_ != 0 || line_scanned_ != 0; }

 private:
  enum class Line : uint8_t { kComplete, kIncomplete, kTooLong };

  size_t parse_plain(std::span<char> buffer, std::vector<Bytes>& args) const;
  Result resume(std::span<char> buffer, std::vector<Bytes>& args);
  Result parse_inline(std::span<char> buffer, std::vector<Bytes>& args);
  bool parse_count_line(std::span<char> buffer, Result& result);
  bool parse_bulk_header(std::span<char> buffer, Result& result);
  Line find_line_end(std::span<char> buffer, char terminator, size_t& line_end);
  void start_over();
  Result fail(std::string message);
  Result need(size_t bytes) const { return {Outcome::kNeedMore, bytes}; }

  RespLimits limits_;
  // Limits of a request that parse_plain accepts; stricter before AUTH.
  int64_t plain_max_args_ = RespLimits().max_args;
  int64_t plain_max_bulk_bytes_ = RespLimits().max_bulk_bytes;

  // State of a suspended request, relative to its first byte.
  size_t position_ = 0;       // The next unparsed byte: a header line or the bulk's content.
  size_t line_scanned_ = 0;   // Bytes from position_ on that hold no line end.
  int64_t args_left_ = 0;     // Bulks still missing; 0 = the count line is not parsed yet.
  int64_t bulk_length_ = -1;  // Length of the bulk at position_; -1 = its header is not parsed.
  // The complete arguments of the suspended request; the buffer may move between calls.
  std::vector<Argument> done_;

  Outcome stuck_ = Outcome::kRequest;  // kError or kHttp once that was reported.
  std::string error_;
};

}  // namespace sluice
