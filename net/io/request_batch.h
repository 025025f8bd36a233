// RequestBatch: requests that have been parsed and not yet executed, with views of all their
// arguments.
//
// Each level of an I/O thread has one, used by the running session and empty between two sessions.
// The views point into that session's input buffer.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/execution/prefetch.h"
#include "engine/execution/request.h"
#include "net/io/input_buffer.h"
#include "net/resp/resp_parser.h"

namespace sluice {

struct RequestBatch {
  struct Item {
    size_t first_argument;
    size_t argument_count;
    size_t bytes;     // of input
    Request request;  // set when all are parsed: until then the arguments may move
  };

  std::vector<Bytes> arguments;
  std::array<Item, Prefetch::kMaxRequests> items;
  size_t count = 0;
  size_t next = 0;
  // What follows the last request.
  RespParser::Outcome end = RespParser::Outcome::kRequest;
  Prefetch prefetch;

  bool empty() const { return next == count; }
  void clear() {
    arguments.clear();
    count = 0;
    next = 0;
    end = RespParser::Outcome::kRequest;
  }
  // Parses the next request, or with `ahead` several, which allows prefetching their memory.
  // Returns false if no request is complete.
  bool parse(RespParser& parser, InputBuffer& input, bool ahead);
  void fetch_ahead(Engine& engine, int database);
  // Requests parsed but not executed are parsed again later; the buffer may move until then.
  void give_back(RespParser& parser) {
    if (!empty()) parser.reset();
    clear();
  }
};

}  // namespace sluice
