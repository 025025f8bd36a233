#include "engine/commands/scan.h"

#include <algorithm>

namespace sluice {

bool parse_scan_request(const Call& call, size_t first, ScanRequest& request) {
  const auto cursor = parse_u64(call.args[first]);
  if (!cursor) {
    call.reply.error("ERR invalid cursor");
    return false;
  }
  request.cursor = *cursor;
  const bool keys = Bytes(call.command.name) == "scan";
  for (size_t at = first + 1; at < call.args.size(); at += 2) {
    if (at + 1 >= call.args.size()) {
      call.reply.error(errors::kSyntax);
      return false;
    }
    if (call.option(at, "COUNT")) {
      int64_t count = 0;
      if (!call.integer(at + 1, count)) return false;
      if (count < 1) {
        call.reply.error(errors::kSyntax);
        return false;
      }
      request.count = static_cast<size_t>(std::min<int64_t>(count, 1 << 20));
    } else if (call.option(at, "MATCH")) {
      request.pattern = call.args[at + 1];
      request.has_pattern = request.pattern != "*";
    } else if (keys && call.option(at, "TYPE")) {
      request.has_type = true;
      request.type = call.args[at + 1];
    } else {
      call.reply.error(errors::kSyntax);
      return false;
    }
  }
  return true;
}

void reply_cursor(Call& call, uint64_t cursor) {
  call.reply.bulk_integer(static_cast<int64_t>(cursor));
}

size_t begin_whole_scan(Call& call) {
  call.reply.array(2);
  call.reply.bulk("0");
  return call.reply.open_array();
}

void reply_scan_missing(Call& call) {
  call.reply.array(2);
  call.reply.bulk("0");
  call.reply.array(0);
}

}  // namespace sluice
