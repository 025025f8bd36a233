// RequestBatch: requests that are parsed and not yet executed, with the views of all their
// arguments.
//
// Each level of an I/O thread has one, and the session that runs uses it: it is empty between two
// of them. The views point into that session's input buffer.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/prefetch.h"
#include "net/resp_parser.h"

namespace sluice {

struct RequestBatch {
  struct Request {
    size_t first_argument;
    size_t argument_count;
    size_t bytes;  // of input
  };

  std::vector<Bytes> arguments;
  std::array<Request, Prefetch::kMaxRequests> requests;
  size_t count = 0;
  size_t next = 0;
  // What stands behind the last one.
  RespParser::Outcome end = RespParser::Outcome::kRequest;
  Prefetch prefetch;

  bool empty() const { return next == count; }
  void clear() {
    arguments.clear();
    count = 0;
    next = 0;
    end = RespParser::Outcome::kRequest;
  }
  std::span<const Bytes> arguments_of(const Request& request) const {
    return {arguments.data() + request.first_argument, request.argument_count};
  }
};

}  // namespace sluice
