// A page of a queue's jobs in the order in which no index has them: the newest first.
//
// Walks all jobs that a selector means and keeps the best of them in a heap; what belongs to the
// page alone is read whole. Both take several turns of the thread where there is much of it, so
// that nobody waits long behind it: jobs that come, go or change meanwhile are seen or not. The
// exchange's I/O thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "net/admin/api.h"

namespace sluice {

struct NewestJobs {
  std::string queue;
  Words selector;  // of Q.LIST, behind WHERE; empty: all
  // What is asked besides of a job, which it gets with payload and result. Null: nothing.
  std::function<bool(const RespValue& job)> wanted;
  size_t skip = 0;
  size_t limit = 0;
  // Jobs of the page behind those whose payloads and results come to that much are shown without.
  size_t max_text_bytes = SIZE_MAX;
  // Gets each job of the page in order, as Q.GET shows it with payload and result.
  std::function<void(const RespValue& job)> take;
  // At the end: how many jobs are meant in all.
  std::function<void(size_t total)> then;
};

// Neither is called once the exchange is cut off, nor after an error, which is responded.
void list_newest_jobs(Exchange& exchange, NewestJobs request);

}  // namespace sluice
