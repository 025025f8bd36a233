// The failed jobs of queues, grouped by their errors: Q.STATS … BY ERROR.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "net/resp/error_groups.h"
#include "tools/cli/connection.h"
#include "tools/cli/table.h"

namespace sluice::cli {

// Reads page by page, so that a queue with many failed jobs blocks no one else.
ErrorGroups read_error_groups(Connection& connection, const std::string& queue);

struct QueueErrors {
  std::string queue;
  std::vector<ErrorGroup> groups;  // the largest ones, in their order
};

// A group of one of several queues.
struct ErrorLine {
  const std::string* queue;
  const ErrorGroup* group;
};

// At most so many of all groups, the largest first; of one size the one that failed last.
std::vector<ErrorLine> largest_errors(std::span<const QueueErrors> queues, size_t most);

// By pattern: the lines of one queue.
nlohmann::json errors_by_pattern(std::span<const ErrorLine> lines);
// An array of the lines of several queues.
nlohmann::json errors_of_queues(std::span<const ErrorLine> lines);
Table errors_table(std::span<const ErrorLine> lines, bool with_queue, int64_t now_ms);

}  // namespace sluice::cli
