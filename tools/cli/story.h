// A queue's event log: where it ends, what it says of one job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "net/resp/resp_value.h"
#include "tools/cli/connection.h"
#include "tools/cli/table.h"

namespace sluice::cli {

struct Story {
  RespValue events;  // maps, as as_events makes them
  std::string note;  // what is missing of it; empty: nothing is
};

// The number of the last event, kept or not; 0: there was none. Throws Failure.
int64_t last_event(Connection& connection, const std::string& queue);

// What has happened to a job that was added at `since_ms` (queue time). Throws Failure.
Story read_story(Connection& connection, const std::string& queue, const std::string& id,
                 int64_t since_ms);

// TRIMMED's hint: the oldest event that is kept; nothing: `error` is another one.
std::optional<int64_t> trimmed_oldest(const RespValue& error);

Table events_table(const RespValue& events, int64_t now_ms);

}  // namespace sluice::cli
