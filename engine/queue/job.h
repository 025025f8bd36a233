// Job: one unit of work of a native queue, with everything that is known about it.
//
// Plain data of one shard, guarded by the shard's lock and changed only by engine/work and replay.
// A job is one allocation: this header, the id, the payload. A million waiting jobs are mostly
// headers, so the header holds what every job has; the rest is in JobExtras, which a job gets when
// it first needs one of its fields (options, a run, an end).
//
// Times are *queue time* (engine/base/queue_clock.h), except for those called *steady*, which count
// from the start of service (engine/base/times.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/hash.h"
#include "engine/base/prefetch_line.h"

namespace sluice {

class ClientPort;
class Job;
struct JobSpec;
struct Lane;
struct Worker;

enum class JobState : uint8_t {
  kBlocked,  // waits for the jobs that it needs
  kDelayed,  // until its gate
  kPending,
  kActive,
  kCompleted,
  kFailed,
  kCancelled,
  kExpired,
};
inline constexpr size_t kJobStates = 8;
inline constexpr bool is_terminal(JobState state) { return state >= JobState::kCompleted; }
// As in replies and selectors: "pending", ...
Bytes job_state_name(JobState state);
std::optional<JobState> parse_job_state(Bytes name);

// Ranks of jobs that were moved to the front are below every time, lowest for the last one moved.
inline constexpr int64_t kFrontRanks = -(int64_t{1} << 60);

// A lease: which worker runs the job, since when, until when.
struct JobRun {
  uint64_t token = 0;
  Worker* worker = nullptr;   // null: the pop gave no worker
  std::string request_token;  // REQID
  int64_t started_ms = 0;     // queue time
  int64_t started_steady = 0;
  int64_t lease_ms = 0;  // the term; a TOUCH without LEASE renews the lease by this
  int64_t deadline_steady =
      0;  // of the lease; a cancel with GRACE or a lost connection shortens it
  int64_t run_deadline_steady = INT64_MAX;  // MAXRUN
  // Slot time charged to the group at admission (fair on), corrected when the run ends.
  double charged_ms = 0;
  // Signalled to stop: the lease can no longer be extended.
  bool cancelled = false;
  std::string cancel_reason;
  // The connection that holds it, for the push about a cancel, and for TIED. Not journaled.
  std::weak_ptr<ClientPort> holder;
  uint64_t tied_client_id = 0;  // 0: not tied

  // When the timer must check it next; the key of the job in Queue::leases.
  int64_t due_steady() const { return std::min(deadline_steady, run_deadline_steady); }
};

// The optional attributes of Q.ADD. -1 or an empty value: not given, so the queue's value applies.
struct JobOptions {
  int64_t lease_ms = -1;
  int64_t max_run_ms = -1;
  int32_t retry = -1;
  uint32_t after_count = 0;  // how many of `needs`, its last ones, were given by AFTER
  int64_t backoff_base_ms = -1;
  int64_t backoff_max_ms = -1;
  // All ids that were given, met or not: by NEED, then by AFTER. Each is there once.
  std::vector<std::string> needs;
  std::vector<std::pair<std::string, std::string>> tags;

  std::span<const std::string> by_need() const {
    return {needs.data(), needs.size() - after_count};
  }
  std::span<const std::string> by_after() const { return std::span(needs).last(after_count); }
};

// How the job ended.
struct JobEnd {
  int64_t finished_ms = 0;    // queue time
  uint64_t finish_order = 0;  // the key of the job in the queue's order of ends
  uint64_t last_token = 0;    // the lease that ended it: a repeated ACK by it succeeds
  int64_t run_ms = -1;        // -1: it never ran
  std::string result;
};

// The payload that waits under an active id (IFDUP UPDATE, REPLACE), with the attributes given with
// it.
struct JobSuccessor {
  std::string payload;
  bool replaces = false;  // IFDUP REPLACE: it has all attributes of its own
  int band = -1;
  int64_t ttl_ms = -1;
  JobOptions options;
  // For REPLACE: attributes that an update may not change.
  std::string group;
  std::vector<std::string> keys;
  uint32_t cost = 1;
  int64_t boost_ms = 0;
  int64_t gate_ms = 0;  // earliest start; 0: at once
  int64_t at_ms = 0;    // as in JobExtras
};

// What the runs of a job have written (Q.TOUCH ... LOG): its last bytes, over all its attempts.
struct JobLog {
  uint64_t offset = 0;  // of the first byte; those before it are gone
  std::string bytes;

  uint64_t end() const { return offset + bytes.size(); }
  // Writes bytes at an offset, and drops those before `kept_from`, which is not beyond them. What
  // is there already stays, as a record may be applied again. If bytes in between are missing, the
  // log begins with these.
  void write(uint64_t at, Bytes more, uint64_t kept_from);
};

struct JobExtras {
  uint32_t cost = 1;
  uint32_t attempts = 0;  // times given to a worker, including the present one
  uint16_t crashes = 0;   // leases that expired
  uint16_t retries_used = 0;
  bool bound = false;  // no longer takes part in the LIFO pairing: it keeps its own ticket
  // 0: same as seq. Differs once a LIFO stack has exchanged tickets. For a bound job whose ticket
  // BACK has renumbered, it is the ticket's original number.
  uint64_t arrival = 0;
  int64_t enqueued_ms = 0;
  int64_t release_ms = 0;  // the rank without boost, front or back
  int64_t boost_ms = 0;
  int64_t gate_ms = 0;  // kDelayed: earliest release
  // The `AT` that gave its release time, as it was given, if the conversion to queue time changed
  // it (else 0). Repeating the same AT means the same time, even after a step of the wall clock.
  int64_t at_ms = 0;
  int64_t ttl_ms = -1;       // as given, else the group's value when the job was added; -1: none
  int64_t ttl_left_ms = -1;  // the budget left when it last stopped being pending; -1: all of it
  int64_t ttl_due_ms = 0;    // while shown as pending: when it expires (queue time); 0: never
  std::vector<std::string> unmet;  // kBlocked: those of JobOptions::needs that are not met
  uint64_t acknowledged = 0;       // the lease that completed the previous job with this id
  std::string error;               // of the last failure, or the reason of the cancel
  std::string progress;
  std::unique_ptr<JobOptions> options;
  std::unique_ptr<JobRun> run;  // kActive
  std::unique_ptr<JobEnd> end;  // terminal
  std::unique_ptr<JobSuccessor> successor;
  std::unique_ptr<JobLog> log;  // null: nothing has been written

  // Ties the job to its present ticket. REQUIRES: the job is in no index.
  void bind() {
    if (!bound) arrival = 0;
    bound = true;
  }
};

class Job {
 public:
  static Job* make(Bytes id, Bytes payload);
  static void destroy(Job* job);

  Bytes id() const { return {data(), id_size_}; }
  Bytes payload() const { return {data() + id_size_, payload_size_}; }
  // A copy of this job with another payload. It takes over the extras, so this job must be removed
  // from all indexes and destroyed.
  Job* with_payload(Bytes payload);

  bool is_front() const { return rank < kFrontRanks; }
  JobExtras& extras() {  // allocated on demand
    if (!extras_) make_extras();
    return *extras_;
  }
  const JobExtras* extras_if() const { return extras_.get(); }
  JobExtras* extras_if() { return extras_.get(); }

  uint32_t cost() const { return extras_ ? extras_->cost : 1; }
  uint64_t arrival() const { return extras_ && extras_->arrival != 0 ? extras_->arrival : seq; }
  int64_t enqueued_ms() const { return extras_ ? extras_->enqueued_ms : rank; }
  int64_t release_ms() const { return extras_ ? extras_->release_ms : rank; }
  int64_t gate_ms() const { return extras_ ? extras_->gate_ms : 0; }
  // The total time that it may be pending; 0: no limit.
  int64_t ttl_ms() const { return extras_ && extras_->ttl_ms > 0 ? extras_->ttl_ms : 0; }
  const JobOptions* options() const { return extras_ ? extras_->options.get() : nullptr; }
  // Whether any end of the job of this id lets it run (AFTER), not only its completion.
  bool comes_after(Bytes id) const;
  JobRun* run() const { return extras_ ? extras_->run.get() : nullptr; }
  JobEnd* end() const { return extras_ ? extras_->end.get() : nullptr; }
  // These read the job, or the job and its extras.
  void prefetch_extras() const { prefetch_bytes(extras_.get(), sizeof(JobExtras)); }
  void prefetch_end() const { prefetch_bytes(end(), sizeof(JobEnd)); }

  size_t memory_bytes() const {
    const size_t own = sizeof(Job) + id_size_ + payload_size_;
    return extras_ ? own + extras_bytes() : own;
  }
  // The bytes that a retained job holds for clients: id, payload, result, progress, log, error,
  // group, keys, tags, needs. REQUIRES: it has ended.
  uint64_t retained_bytes() const;

  // Its place inside band and group: (rank, seq). The rank is release time - boost, in milliseconds
  // of queue time. Only engine/work may change it, while the job is in no index.
  int64_t rank = 0;
  uint64_t seq = 0;
  // The lane of its band, group and keys; set when the job is made, changed with the band. Never
  // null once the job is in a queue. The lane keeps group and keys alive.
  Lane* lane = nullptr;
  JobState state = JobState::kPending;
  uint8_t band = 0;

 private:
  Job() = default;
  void make_extras();
  size_t extras_bytes() const;
  char* data() { return reinterpret_cast<char*>(this + 1); }
  const char* data() const { return reinterpret_cast<const char*>(this + 1); }

  uint16_t id_size_ = 0;
  uint32_t payload_size_ = 0;
  std::unique_ptr<JobExtras> extras_;
};
static_assert(sizeof(Job) == 40);

struct JobTraits {
  static constexpr size_t kMaxOrdered = 128;
  static Bytes key(const Job* job) { return job->id(); }
  static uint64_t hash(Bytes id) { return hash_bytes(id); }
};

}  // namespace sluice
