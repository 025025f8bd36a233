// Shows jobs as tables and as a list of their fields.
//
// Pure functions. A job is a map as Q.GET, Q.LIST or Q.POP return it (QUEUE.md). What is for people
// has the reason why a job waits in words, else as the server's code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "net/resp/resp_value.h"
#include "tools/cli/table.h"

namespace sluice::cli {

// A table of jobs from Q.LIST. `with` names fields that add a column.
Table jobs_table(const RespValue& jobs, int64_t now_ms, bool is_for_people,
                 std::span<const std::string> with);
// A table of jobs of one state for people: those columns of the other that say most about it.
// `what` is the title of the first column.
Table short_jobs_table(const char* what, const RespValue& jobs, int64_t now_ms,
                       std::span<const char* const> columns);
// A table of jobs from Q.POP.
Table leases_table(const RespValue& jobs, int64_t now_ms);
// A table of the fields of one job and their values; unknown values are left out. For people a text
// with more than 4096 bytes is cut, and its size follows.
Table fields_table(const RespValue& job, int64_t now_ms, bool is_for_people);

// The most useful information about a job in its state. People see its position beside it.
Cell note_of(const RespValue& job, int64_t now_ms, bool is_for_people);
// The job's error; a sentence where the server's is "need ID".
std::string error_text(const RespValue& job);
// "pending, 3 before it, starts in about 5 s"
std::string place_text(const RespValue& job, bool with_start = true);

// "a=1 b=2"
std::string pairs_text(const RespValue& map);

}  // namespace sluice::cli
