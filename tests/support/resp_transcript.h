// The result of a RespParser for an input that arrives in given pieces, as one comparable text.
// Used by the unit test and by the fuzz target; both compare it between splits.
//
// Every call of the parser gets a fresh allocation of exactly the bytes that it may read, so the
// buffer moves each time and AddressSanitizer finds any read past the end.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/resp/resp_parser.h"

namespace sluice::test {

// Lengths of the pieces; the remaining bytes arrive at once.
using Pieces = std::span<const size_t>;

// Not CHECK, which the unit test's framework defines.
inline void require(bool holds) {
  if (holds) return;
  std::fprintf(stderr, "a promise of RespParser is broken\n");
  std::abort();
}

inline void append_request(std::string& transcript, const std::vector<Bytes>& args) {
  transcript += "request";
  for (const Bytes arg : args) {
    transcript += ' ' + std::to_string(arg.size()) + ':';
    transcript += arg;
  }
  transcript += '\n';
}

inline std::string parse_in_pieces(std::string_view input, Pieces pieces,
                                   const RespLimits& limits = {}) {
  RespParser parser(limits);
  std::vector<Bytes> args;
  std::string transcript;
  std::string pending;  // From the start of the current request.
  size_t missing = 1;   // Bytes that the parser needs after `pending`.
  size_t next_piece = 0;
  while (!input.empty()) {
    size_t length = next_piece < pieces.size() ? pieces[next_piece++] : input.size();
    length = std::min(length, input.size());
    pending += input.substr(0, length);
    input.remove_prefix(length);
    bool fed_too_little = length < missing;
    missing -= std::min(missing, length);
    for (;;) {
      auto exact = std::make_unique<char[]>(pending.size());
      std::copy(pending.begin(), pending.end(), exact.get());
      const RespParser::Result result = parser.parse({exact.get(), pending.size()}, args);
      require(!fed_too_little || result.outcome == RespParser::Outcome::kNeedMore);
      fed_too_little = false;
      if (result.outcome == RespParser::Outcome::kNeedMore) {
        require(args.empty() && result.bytes > 0);
        missing = std::max(missing, result.bytes);
        break;
      }
      missing = 1;
      if (result.outcome == RespParser::Outcome::kError) {
        require(parser.error().find_first_of("\r\n") == std::string::npos);
        return transcript + "error " + parser.error() + '\n';
      }
      if (result.outcome == RespParser::Outcome::kHttp) return transcript + "http\n";
      require(result.bytes > 0 && result.bytes <= pending.size());
      require(!parser.mid_request());
      if (result.outcome == RespParser::Outcome::kRequest) {
        require(!args.empty());
        append_request(transcript, args);
      } else {
        require(args.empty());
      }
      pending.erase(0, result.bytes);
    }
  }
  return transcript + "pending " + std::to_string(pending.size()) + '\n';
}

inline std::string parse_whole(std::string_view input, const RespLimits& limits = {}) {
  return parse_in_pieces(input, {}, limits);
}

}  // namespace sluice::test
