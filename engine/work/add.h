// Q.ADD: the verb that adds a job, or changes the one that has its id (IFDUP).
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/work/queue_work.h"

namespace sluice {

enum class IfDuplicate : uint8_t { kError, kKeep, kUpdate, kReplace };

// The arguments of Q.ADD. An absent option was not given.
struct JobSpec {
  Bytes id;  // "*": the queue chooses
  Bytes payload;
  std::optional<uint8_t> band;
  std::optional<int64_t> boost_ms;
  std::optional<int64_t> delay_ms;
  std::optional<int64_t> at_ms;  // as given: of the wall clock
  std::optional<Bytes> group;
  std::vector<Bytes> keys;
  std::optional<uint32_t> cost;
  std::optional<int64_t> ttl_ms;
  std::optional<int64_t> lease_ms;
  std::optional<int64_t> max_run_ms;
  std::optional<uint32_t> retry;
  std::optional<std::pair<int64_t, int64_t>> backoff_ms;  // base, max
  IfDuplicate if_duplicate = IfDuplicate::kError;
  std::vector<Bytes> needs;
  std::vector<Bytes> afters;  // none of them is in `needs`
  std::vector<std::pair<Bytes, Bytes>> tags;
  std::optional<int64_t> max_wait_ms;
};

struct AddOutcome {
  const char* result = "added";  // added, kept, updated, replaced, queued
  Job* job = nullptr;            // the one that the reply describes
};

Result<AddOutcome> add_job(QueueWork& work, const JobSpec& spec);
// The waiting payload of an ended run becomes the job, as a new one. Its record carries the event
// of the run that has ended, so the log has both.
void become_successor(QueueWork& work, Job* job, EventType ended, const EventFields& fields);
// Counts a job in the statistics as added.
void count_added(QueueWork& work, const Job& job);

}  // namespace sluice
