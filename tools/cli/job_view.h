// Shows jobs as tables and as a list of their fields.
//
// Pure functions. A job is a map as Q.GET, Q.LIST or Q.POP return it (QUEUE.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "net/resp/resp_value.h"
#include "tools/cli/table.h"

namespace sluice::cli {

// A table of jobs from Q.LIST. `with` names fields that add a column.
Table jobs_table(const RespValue& jobs, int64_t now_ms, std::span<const std::string> with);
// A table of jobs of one state: those columns of the other that say most about it. `what` is the
// title of the first column.
Table short_jobs_table(const char* what, const RespValue& jobs, int64_t now_ms,
                       std::span<const char* const> columns);
// A table of jobs from Q.POP.
Table leases_table(const RespValue& jobs, int64_t now_ms);
// What a screen shows of a payload, a result or a progress, which may have megabytes.
inline constexpr size_t kShownValueBytes = 4096;
// A table of the fields of one job and their values; unknown values are left out. A text with more
// than `most_bytes` is cut, and its size follows.
Table fields_table(const RespValue& job, int64_t now_ms, size_t most_bytes);

// The most useful information about a job in its state.
Cell note_of(const RespValue& job, int64_t now_ms);
// The job's error; a sentence where the server's is "need ID".
std::string error_text(const RespValue& job);
// "pending, 3 before it, starts in about 5 s"
std::string place_text(const RespValue& job);

// "a=1 b=2"
std::string pairs_text(const RespValue& map);

}  // namespace sluice::cli
