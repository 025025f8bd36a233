// Reads a queue's event log: where it ends, and the events of one job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "net/resp/resp_value.h"
#include "tools/cli/connection.h"
#include "tools/cli/table.h"

namespace sluice::cli {

struct Story {
  RespValue events;  // maps, as made by as_events
  std::string note;  // why the story is incomplete; empty: it is complete
};

// The number of the last event, kept or not; 0 if there was none. Throws Failure.
int64_t last_event(Connection& connection, const std::string& queue);

// Reads the events of a job that was added at `since_ms` (queue time). Throws Failure.
Story read_story(Connection& connection, const std::string& queue, const std::string& id,
                 int64_t since_ms);

// The oldest kept event, as stated by a TRIMMED error; nothing for other errors.
std::optional<int64_t> trimmed_oldest(const RespValue& error);

Table events_table(const RespValue& events, int64_t now_ms);

}  // namespace sluice::cli
