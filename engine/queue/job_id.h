// Valid ids of jobs: the rule that commands, the HTTP API and the CLI share.
#pragma once

#include "engine/base/bytes.h"
#include "engine/base/limits.h"

namespace sluice {

// A word that may be given in place of an id.
inline constexpr Bytes kWhereWord = "WHERE";

// An id has 1..512 bytes and is not one of the reserved words `*`, WHERE and ALL (any case).
inline bool is_job_id(Bytes id) {
  return !id.empty() && id.size() <= kMaxNameBytes && id != "*" &&
         !equals_ignore_case(id, kWhereWord) && !equals_ignore_case(id, "ALL");
}

}  // namespace sluice
