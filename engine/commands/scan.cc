#include "engine/commands/scan.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>

namespace sluice {

bool parse_scan_cursor(const Call& call, size_t argument, ScanRequest& request) {
  // Like strtoul: an empty text is zero, and a sign is allowed.
  const std::string text(call.args[argument]);
  char* stop = nullptr;
  errno = 0;
  request.cursor = std::strtoul(text.c_str(), &stop, 10);
  if (*stop == '\0' && errno != ERANGE && std::isspace(static_cast<unsigned char>(text[0])) == 0) {
    return true;
  }
  return fail(call, "ERR invalid cursor");
}

bool parse_scan_options(const Call& call, size_t first, ScanRequest& request) {
  const bool keys = Bytes(call.command.name) == "scan";
  const bool fields = Bytes(call.command.name) == "hscan";
  for (size_t at = first; at < call.args.size(); at += 2) {
    if (fields && call.option(at, "NOVALUES")) {
      request.no_values = true;
      --at;  // it has no value
      continue;
    }
    if (at + 1 >= call.args.size()) return fail(call, errors::kSyntax);
    if (call.option(at, "COUNT")) {
      int64_t count = 0;
      if (!call.integer(at + 1, count)) return false;
      if (count < 1) return fail(call, errors::kSyntax);
      request.count = static_cast<size_t>(std::min<int64_t>(count, 1 << 20));
    } else if (call.option(at, "MATCH")) {
      request.pattern = call.args[at + 1];
      request.has_pattern = request.pattern != "*";
    } else if (keys && call.option(at, "TYPE")) {
      request.has_type = true;
      request.type = call.args[at + 1];
    } else {
      return fail(call, errors::kSyntax);
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

const Entry* begin_element_scan(Call& call, Type type, ScanRequest& request) {
  if (!parse_scan_cursor(call, 2, request)) return nullptr;
  const Found<const Entry> entry = call.find(call.key(1), type);
  if (entry.refused()) return nullptr;
  if (entry == nullptr) {
    call.reply.array(2);
    call.reply.bulk("0");
    call.reply.array(0);
    return nullptr;
  }
  return parse_scan_options(call, 3, request) ? entry : nullptr;
}

}  // namespace sluice
