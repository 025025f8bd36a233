// What may name a job: the rule that commands, the HTTP API and the CLI share.
#pragma once

#include "engine/base/bytes.h"
#include "engine/base/limits.h"

namespace sluice {

// What stands in a command where an id may, and is none.
inline constexpr Bytes kWhereWord = "WHERE";

// 1..512 bytes, and not one of the reserved words `*`, WHERE and ALL (any case).
inline bool is_job_id(Bytes id) {
  return !id.empty() && id.size() <= kMaxNameBytes && id != "*" &&
         !equals_ignore_case(id, kWhereWord) && !equals_ignore_case(id, "ALL");
}

}  // namespace sluice
