#include "engine/rdb/function_payload.h"

#include "engine/rdb/format.h"
#include "engine/rdb/reader.h"
#include "engine/rdb/value.h"
#include "engine/rdb/writer.h"

namespace sluice::rdb {

std::string write_functions(const std::vector<Bytes>& codes) {
  std::string payload;
  for (const Bytes code : codes) {
    payload += static_cast<char>(kFunctionLibrary);
    put_string(payload, code);
  }
  put_footer(payload);
  return payload;
}

FunctionsFault read_functions(Bytes payload, uint64_t max_string_bytes,
                              std::vector<std::string>& codes) {
  const auto content = check_footer(payload);
  if (!content) return FunctionsFault::kFooter;
  Reader from(*content, max_string_bytes);
  for (uint8_t type = 0; from.left() != 0;) {
    Bytes code;
    if (!from.byte(type) || type != kFunctionLibrary) return FunctionsFault::kOtherType;
    if (!from.string(code)) return FunctionsFault::kCutShort;
    codes.emplace_back(code);
  }
  return FunctionsFault::kNone;
}

}  // namespace sluice::rdb
