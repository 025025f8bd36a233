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
    Request request;  // once all are parsed: until then the arguments may move
  };

  std::vector<Bytes> arguments;
  std::array<Item, Prefetch::kMaxRequests> items;
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
  // Parses the next request, or `ahead` of their execution several, which lets their memory be
  // fetched ahead. False: there is none.
  bool parse(RespParser& parser, InputBuffer& input, bool ahead);
  void fetch_ahead(Engine& engine, int database);
  // What was parsed and not executed is parsed again later; the buffer may move until then.
  void give_back(RespParser& parser) {
    if (!empty()) parser.reset();
    clear();
  }
};

}  // namespace sluice
