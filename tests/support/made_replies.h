// Replies as a client reads them (net/resp/resp_value.h), for tests of what it makes of them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "net/resp/resp_value.h"

namespace sluice::test {

inline sluice::RespValue text(const std::string& value) {
  sluice::RespValue made;
  made.kind = sluice::RespValue::Kind::kText;
  made.text = value;
  return made;
}

inline sluice::RespValue number(int64_t value) {
  sluice::RespValue made;
  made.kind = sluice::RespValue::Kind::kInteger;
  made.integer = value;
  return made;
}

inline sluice::RespValue list(std::vector<sluice::RespValue> items,
                              sluice::RespValue::Kind kind = sluice::RespValue::Kind::kArray) {
  sluice::RespValue made;
  made.kind = kind;
  made.items = std::move(items);
  return made;
}

inline sluice::RespValue map(std::vector<sluice::RespValue> items) {
  return list(std::move(items), sluice::RespValue::Kind::kMap);
}

}  // namespace sluice::test
