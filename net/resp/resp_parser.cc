#include "net/resp/resp_parser.h"

#include <algorithm>
#include <cstring>

#include "engine/base/check.h"
#include "engine/base/numbers.h"
#include "engine/base/quoting.h"

namespace sluice {
namespace {

constexpr size_t kLineEndBytes = 2;          // "\r\n"
constexpr size_t kKeptDoneArguments = 1024;  // More capacity than this is given back.

// Reads a length header in its usual form; `from` points after its '*' or '$'. The form is one to
// eighteen digits without a leading zero, and the line end. Returns -1 for anything else.
inline int64_t read_plain_length(const char*& from, const char* end) {
  if (end - from < 3) return -1;
  unsigned digit = static_cast<unsigned char>(*from) - unsigned{'0'};
  if (digit > 9) return -1;
  if (from[1] == '\r') {
    from += 3;
    return digit;
  }
  if (digit == 0) return -1;
  int64_t value = digit;
  const char* p = from + 1;
  const char* const last = std::min(end, from + 18);
  for (; p < last; ++p) {
    digit = static_cast<unsigned char>(*p) - unsigned{'0'};
    if (digit > 9) break;
    value = value * 10 + digit;
  }
  if (end - p < 2 || *p != '\r') return -1;
  from = p + 2;
  return value;
}

bool looks_like_http(Bytes first_argument) {
  return equals_ignore_case(first_argument, "post") ||
         (first_argument.size() >= 5 && equals_ignore_case(first_argument.substr(0, 5), "host:"));
}

}  // namespace

void RespParser::set_limits(const RespLimits& limits) {
  limits_ = limits;
  plain_max_args_ = limits.max_args;
  plain_max_bulk_bytes_ = limits.max_bulk_bytes;
  if (limits.authenticated) return;
  plain_max_args_ = std::min(plain_max_args_, RespLimits::kUnauthenticatedMaxArgs);
  plain_max_bulk_bytes_ = std::min(plain_max_bulk_bytes_, RespLimits::kUnauthenticatedMaxBulkBytes);
}

void RespParser::reset() {
  start_over();
  stuck_ = Outcome::kRequest;
  error_.clear();
}

RespParser::Result RespParser::parse_append(std::span<char> buffer, std::vector<Bytes>& args) {
  if (stuck_ != Outcome::kRequest) return {stuck_, 0};
  if (buffer.empty()) return need(1);
  if (buffer[0] != '*') return parse_inline(buffer, args);
  if (!mid_request()) {
    const size_t consumed = parse_plain(buffer, args);
    if (consumed != 0) return {Outcome::kRequest, consumed};
  }
  return resume(buffer, args);
}

// Parses a complete, ordinary request in one pass. If the request is incomplete or unusual, returns
// 0 and changes nothing; resume() then parses it once from the start.
size_t RespParser::parse_plain(std::span<char> buffer, std::vector<Bytes>& args) const {
  const char* from = buffer.data() + 1;
  const char* const end = buffer.data() + buffer.size();
  const int64_t count = read_plain_length(from, end);
  if (count <= 0 || count > plain_max_args_) return 0;
  const size_t args_before = args.size();
  for (int64_t i = 0; i < count; ++i) {
    int64_t length = -1;
    if (from < end && *from == '$') length = read_plain_length(++from, end);
    if (length < 0 || length > plain_max_bulk_bytes_ ||
        end - from < length + static_cast<int64_t>(kLineEndBytes)) {
      args.resize(args_before);
      return 0;
    }
    args.emplace_back(from, static_cast<size_t>(length));
    // As in Redis, the two bytes after a bulk are skipped without a check.
    from += static_cast<size_t>(length) + kLineEndBytes;
  }
  return static_cast<size_t>(from - buffer.data());
}

// The general case: continues a request step by step, and can stop at any byte.
RespParser::Result RespParser::resume(std::span<char> buffer, std::vector<Bytes>& args) {
  CHECK(buffer.size() >= position_);
  Result result{};
  if (args_left_ == 0 && !parse_count_line(buffer, result)) return result;
  while (args_left_ > 0) {
    if (bulk_length_ < 0 && !parse_bulk_header(buffer, result)) return result;
    const size_t length = static_cast<size_t>(bulk_length_);
    const size_t available = buffer.size() - position_;
    if (available < length + kLineEndBytes) return need(length + kLineEndBytes - available);
    done_.push_back({position_, length});
    position_ += length + kLineEndBytes;
    bulk_length_ = -1;
    --args_left_;
  }
  args.reserve(args.size() + done_.size());
  for (const Argument& argument : done_) {
    args.emplace_back(buffer.data() + argument.offset, argument.length);
  }
  const size_t consumed = position_;
  start_over();
  return {Outcome::kRequest, consumed};
}

// Both header functions return true when parsing continues after the header, and false with a
// result for the session.
bool RespParser::parse_count_line(std::span<char> buffer, Result& result) {
  size_t line_end = 0;
  switch (find_line_end(buffer, '\r', line_end)) {
    case Line::kIncomplete:
      result = need(1);
      return false;
    case Line::kTooLong:
      result = fail("Protocol error: too big mbulk count string");
      return false;
    case Line::kComplete:
      break;
  }
  const std::optional<int64_t> count = parse_i64({buffer.data() + 1, line_end - 1});
  if (!count || *count > limits_.max_args) {
    result = fail("Protocol error: invalid multibulk length");
    return false;
  }
  if (*count > plain_max_args_) {
    result = fail("Protocol error: unauthenticated multibulk length");
    return false;
  }
  if (*count <= 0) {
    start_over();
    result = {Outcome::kSkipped, line_end + kLineEndBytes};
    return false;
  }
  args_left_ = *count;
  position_ = line_end + kLineEndBytes;
  return true;
}

bool RespParser::parse_bulk_header(std::span<char> buffer, Result& result) {
  size_t line_end = 0;
  switch (find_line_end(buffer, '\r', line_end)) {
    case Line::kIncomplete:
      result = need(1);
      return false;
    case Line::kTooLong:
      result = fail("Protocol error: too big bulk count string");
      return false;
    case Line::kComplete:
      break;
  }
  char type = buffer[position_];
  if (type != '$') {
    // This is the only raw client byte in an error; it must not end the reply's line.
    if (type == '\r' || type == '\n' || type == '\0') type = ' ';
    result = fail(std::string("Protocol error: expected '$', got '") + type + "'");
    return false;
  }
  const size_t digits = position_ + 1;
  const std::optional<int64_t> length = parse_i64({buffer.data() + digits, line_end - digits});
  if (!length || *length < 0 || *length > limits_.max_bulk_bytes) {
    result = fail("Protocol error: invalid bulk length");
    return false;
  }
  if (*length > plain_max_bulk_bytes_) {
    result = fail("Protocol error: unauthenticated bulk length");
    return false;
  }
  bulk_length_ = *length;
  position_ = line_end + kLineEndBytes;
  return true;
}

RespParser::Result RespParser::parse_inline(std::span<char> buffer, std::vector<Bytes>& args) {
  size_t line_end = 0;
  switch (find_line_end(buffer, '\n', line_end)) {
    case Line::kIncomplete:
      return need(1);
    case Line::kTooLong:
      return fail("Protocol error: too big inline request");
    case Line::kComplete:
      break;
  }
  start_over();
  const size_t consumed = line_end + 1;
  if (line_end > 0 && buffer[line_end - 1] == '\r') --line_end;
  const size_t args_before = args.size();
  if (!split_quoted_args(buffer.first(line_end), args)) {
    return fail("Protocol error: unbalanced quotes in request");
  }
  if (args.size() == args_before) return {Outcome::kSkipped, consumed};
  if (looks_like_http(args[args_before])) {
    args.resize(args_before);
    stuck_ = Outcome::kHttp;
    return {Outcome::kHttp, 0};
  }
  return {Outcome::kRequest, consumed};
}

// Looks for the end of the line that starts at position_. Whether a line is too long depends only
// on its own bytes, never on how many have arrived, so every split of the input gives the same
// result.
RespParser::Line RespParser::find_line_end(std::span<char> buffer, char terminator,
                                           size_t& line_end) {
  const size_t searchable = std::min(buffer.size() - position_, limits_.max_inline_bytes + 1);
  if (line_scanned_ < searchable) {
    const char* const start = buffer.data() + position_;
    const void* found = std::memchr(start + line_scanned_, terminator, searchable - line_scanned_);
    if (found == nullptr) {
      line_scanned_ = searchable;
    } else {
      line_scanned_ = static_cast<size_t>(static_cast<const char*>(found) - start);
      line_end = position_ + line_scanned_;
      // A carriage return is examined once the byte after it is there.
      if (terminator == '\r' && line_end + 1 == buffer.size()) return Line::kIncomplete;
      line_scanned_ = 0;
      return Line::kComplete;
    }
  }
  return line_scanned_ > limits_.max_inline_bytes ? Line::kTooLong : Line::kIncomplete;
}

void RespParser::start_over() {
  position_ = 0;
  line_scanned_ = 0;
  args_left_ = 0;
  bulk_length_ = -1;
  if (done_.capacity() > kKeptDoneArguments) {
    std::vector<Argument>().swap(done_);
  } else {
    done_.clear();
  }
}

RespParser::Result RespParser::fail(std::string message) {
  start_over();
  error_ = std::move(message);
  stuck_ = Outcome::kError;
  return {Outcome::kError, 0};
}

}  // namespace sluice
