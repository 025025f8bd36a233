// The common part of SCAN, HSCAN, SSCAN and ZSCAN: their options, and walking a map by cursor.
//
// A cursor is the lowest hash prefix that is still to be visited (SplitMap::scan): an element that
// exists from the first call to the last is returned, however the map grows or shrinks meanwhile.
#pragma once

#include <cstdint>

#include "engine/execution/call.h"

namespace sluice {

struct ScanRequest {
  uint64_t cursor = 0;
  size_t count = 10;
  bool has_pattern = false;
  Bytes pattern;
  bool has_type = false;  // SCAN only
  Bytes type;
  bool no_values = false;  // HSCAN only

  bool matches(Bytes text) const { return !has_pattern || glob_match(pattern, text); }
};

// Parse the cursor, and then `[MATCH pattern] [COUNT count] [TYPE type] [NOVALUES]` from the
// argument `first` on: two steps, since Redis looks up the key in between. Return false with the
// error replied.
bool parse_scan_cursor(const Call& call, size_t argument, ScanRequest& request);
bool parse_scan_options(const Call& call, size_t first, ScanRequest& request);

// The beginning of HSCAN, SSCAN and ZSCAN: parses the request and finds the key's entry. Null: the
// reply is complete.
const Entry* begin_element_scan(Call& call, Type type, ScanRequest& request);

// Writes cursor 0 and opens an array, for a collection that is returned as a whole. The caller
// closes the array.
size_t begin_whole_scan(Call& call);
// Writes the cursor as decimal text.
void reply_cursor(Call& call, uint64_t cursor);

// One step through `map`; `write(node)` writes a matching node and returns how many values it
// wrote.
template <class Map, class Write>
void reply_scan(Call& call, const ScanRequest& request, const Map& map, Write write) {
  call.reply.array(2);
  // The cursor comes before the elements in the reply but is known after the scan, so they are
  // collected first.
  std::vector<decltype(map.find(Bytes(), 0))> nodes;
  const uint64_t next =
      map.scan(request.cursor, request.count, [&](auto* node) { nodes.push_back(node); });
  reply_cursor(call, next);
  const size_t mark = call.reply.open_array();
  size_t count = 0;
  for (const auto* node : nodes) count += write(node);
  call.reply.close_array(mark, count);
}

}  // namespace sluice
