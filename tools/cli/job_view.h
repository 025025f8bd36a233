// Shows jobs as tables and as a list of their fields.
//
// Pure functions. A job is a map as Q.GET, Q.LIST or Q.POP return it (QUEUE.md).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "net/resp/resp_value.h"
#include "tools/cli/table.h"

namespace sluice::cli {

// A table of jobs from Q.LIST; `with_payload` adds a column.
Table jobs_table(const RespValue& jobs, int64_t now_ms, std::span<const std::string> with);
// A table of jobs from Q.POP.
Table leases_table(const RespValue& jobs, int64_t now_ms);
// A table of the fields of one job and their values; unknown values are left out.
Table fields_table(const RespValue& job, int64_t now_ms);

// "a=1 b=2"
std::string pairs_text(const RespValue& map);

}  // namespace sluice::cli
