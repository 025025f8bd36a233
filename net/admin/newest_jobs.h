// A page of a queue's jobs ordered newest first, for which there is no index.
//
// Walks all selected jobs and keeps the newest in a heap; only the jobs of the page are read
// completely. With many jobs both take several turns of the thread, so that others do not wait:
// jobs that are added, removed or changed in the meantime may be missed. Runs on the exchange's I/O
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "net/admin/api.h"

namespace sluice {

struct NewestJobs {
  std::string queue;
  Words selector;  // of Q.LIST, after WHERE; empty: all
  // Another condition on a job, which is read with payload and result. Null: none.
  std::function<bool(const RespValue& job)> wanted;
  size_t skip = 0;
  size_t limit = 0;
  // Once the payloads and results of the page exceed this size, further jobs are shown without
  // them.
  size_t max_text_bytes = SIZE_MAX;
  // Receives each job of the page in order, as from Q.GET with payload and result.
  std::function<void(const RespValue& job)> take;
  // Called at the end with the total number of matching jobs.
  std::function<void(size_t total)> then;
};

// Neither is called after the exchange is cut off, nor after an error, which is responded.
void list_newest_jobs(Exchange& exchange, NewestJobs request);

}  // namespace sluice
