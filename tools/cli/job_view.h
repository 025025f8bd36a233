// Jobs as tables and as a list of their fields.
//
// Pure functions; a job is a map of Q.GET, Q.LIST or Q.POP (QUEUE.md).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "net/resp/resp_value.h"
#include "tools/cli/table.h"

namespace sluice::cli {

// Jobs of Q.LIST; `with_payload` adds a column.
Table jobs_table(const RespValue& jobs, int64_t now_ms, std::span<const std::string> with);
// Jobs of Q.POP.
Table leases_table(const RespValue& jobs, int64_t now_ms);
// Field and value of one job, what is not known left out.
Table fields_table(const RespValue& job, int64_t now_ms);

// "a=1 b=2"
std::string pairs_text(const RespValue& map);

}  // namespace sluice::cli
