// Selector: the jobs of a queue that a command selects, and a walk over them in bounded steps.
//
// One grammar for Q.LIST, Q.CANCEL, Q.RETRY and Q.PURGE (QUEUE.md, "Selectors"). A walk uses the
// smallest index that contains all selected jobs: a worker's leases, the pending tickets of a band
// or a group, the delays, the runs, the ended jobs; otherwise the map of ids. It filters by the
// other criteria.
//
// A step ends at a cursor, which names a place in the order walked: a hash prefix of the map
// (SplitMap::scan), or the index and the key of the last job examined. So a job that keeps its
// place (in the map: its id) during a whole walk is returned exactly once, whatever happens
// elsewhere. Indexes are walked in the direction in which jobs move: a job that goes from delayed
// to pending to active to ended meanwhile is returned at least once.
//
// REQUIRES for all functions: the lock of the queue's shard. Views in a Selector are those of the
// arguments.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/glob_literal.h"
#include "engine/base/limits.h"
#include "engine/queue/queue.h"

namespace sluice {

// Sets of states, for Selector::states.
using JobStates = uint8_t;
inline constexpr JobStates state_bit(JobState state) {
  return static_cast<JobStates>(1U << static_cast<unsigned>(state));
}
inline constexpr JobStates kTerminalStates =
    state_bit(JobState::kCompleted) | state_bit(JobState::kFailed) |
    state_bit(JobState::kCancelled) | state_bit(JobState::kExpired);
inline constexpr JobStates kLiveStates = static_cast<JobStates>(~kTerminalStates);

// How much of a payload is searched: one job must not hold a shard for long.
inline constexpr size_t kSearchedPayloadBytes = 64U << 10;

struct Selector {
  JobStates states = 0;        // as clients see them (Queue::shown_state); 0: none is named
  std::optional<Bytes> group;  // a glob
  // The one group that the glob names (glob_literal), whose jobs are indexed.
  std::optional<std::string> group_name;
  std::optional<uint8_t> band;
  std::optional<std::pair<Bytes, Bytes>> tag;
  std::optional<Bytes> key;
  std::optional<Bytes> worker;  // the holder of the job's lease
  // A job's time is its end, its start or its addition.
  std::optional<int64_t> older_ms;  // the minimum age
  std::optional<int64_t> since_ms;  // the earliest, in queue time
  std::optional<int64_t> until_ms;  // all are before it
  // Parts, in any case of ASCII letters.
  std::optional<Bytes> id_part;
  std::optional<Bytes> error;
  std::optional<Bytes> pattern;  // error_pattern() of the error
  std::optional<Bytes> payload;  // a part of its first kSearchedPayloadBytes
  int64_t limit = kMaxPageCount;
  size_t look = kMaxExamined;  // how many jobs a step examines
  bool all = false;            // the selector says ALL; no other criterion has that meaning

  void choose_groups(Bytes glob) {
    group = glob;
    group_name = glob_literal(glob);
  }
  // Whether there is any criterion.
  bool restricts() const {
    return states != 0 || group || band || tag || key || worker || has_times() || reads_texts();
  }
  bool has_times() const { return older_ms || since_ms || until_ms; }
  // Whether it compares texts of jobs, which takes longer than other criteria.
  bool reads_texts() const { return id_part || error || pattern || payload; }
  bool fits_time(int64_t time_ms, int64_t now_ms) const {
    return (!older_ms || now_ms - time_ms >= *older_ms) && (!since_ms || time_ms >= *since_ms) &&
           (!until_ms || time_ms < *until_ms);
  }
  bool matches(const Queue& queue, const Job& job, int64_t now_ms) const;
};

enum class JobOrder : uint8_t {
  kNone,
  kRank,      // pending jobs in their order: by band, then rank
  kAge,       // active jobs by their start, pending ones by rank in any band, delayed ones by their
              // time, ended ones by their end
  kAgeDesc,   // the same, the newest first
  kDeadline,  // active jobs by the end of lease or MAXRUN, delayed ones by their time, pending ones
              // by the end of their TTL
  kDispatch,  // pending jobs as pops would take them (dispatch_order.h): only for Q.LIST
};

struct JobPage {
  std::vector<Job*> jobs;
  std::string cursor = "0";  // where to continue; "0": at the end
  size_t looked_at = 0;      // jobs examined, with those that did not match
};

// The bytes of a page that a job takes. Null: they do not count.
using JobWeight = std::function<size_t(const Job& job)>;

// The next step of a walk: at most `limit` matching jobs (a few more only if hashes of ids
// collide), ending after the job that brings the page to kMaxPageBytes. `cursor` is "0" at the
// beginning, then that of the last page. A selector without states selects all states. Returns
// false if the cursor does not belong to such a walk.
bool walk_jobs(const Queue& queue, const Selector& selector, JobOrder order, Bytes cursor,
               size_t limit, int64_t now_ms, JobPage& page, const JobWeight& weigh = nullptr);

}  // namespace sluice
