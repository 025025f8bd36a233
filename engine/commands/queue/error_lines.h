// The lines of Q.STATS ... BY ERROR: failed jobs by the pattern of their error.
#pragma once

#include "engine/execution/call.h"
#include "engine/queue/selector.h"

namespace sluice {

// The next failed jobs, at most `count`, the newest first. Returns false if the cursor is invalid.
bool walk_failed(const Queue& queue, Bytes cursor, size_t count, int64_t now_ms, JobPage& page);
// A map from pattern to line, in the order in which they are met.
void reply_error_lines(Call& call, const JobPage& page);

}  // namespace sluice
