#include "engine/queue/job.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <new>

#include "engine/base/check.h"
#include "engine/queue/lanes.h"

namespace sluice {

namespace {

constexpr std::array<Bytes, kJobStates> kStateNames = {
    "blocked", "delayed", "pending", "active", "completed", "failed", "cancelled", "expired"};

}  // namespace

Bytes job_state_name(JobState state) { return kStateNames[static_cast<size_t>(state)]; }

std::optional<JobState> parse_job_state(Bytes name) {
  for (size_t i = 0; i < kStateNames.size(); ++i) {
    if (equals_ignore_case(name, kStateNames[i])) return static_cast<JobState>(i);
  }
  return std::nullopt;
}

Job* Job::make(Bytes id, Bytes payload) {
  CHECK(id.size() <= UINT16_MAX && payload.size() <= UINT32_MAX);
  void* memory = std::malloc(sizeof(Job) + id.size() + payload.size());
  CHECK(memory != nullptr);
  Job* job = new (memory) Job();
  job->id_size_ = static_cast<uint16_t>(id.size());
  job->payload_size_ = static_cast<uint32_t>(payload.size());
  std::memcpy(job->data(), id.data(), id.size());
  if (!payload.empty()) std::memcpy(job->data() + id.size(), payload.data(), payload.size());
  return job;
}

void Job::destroy(Job* job) {
  job->~Job();
  std::free(job);
}

Job* Job::with_payload(Bytes payload) {
  Job* made = make(id(), payload);
  made->rank = rank;
  made->seq = seq;
  made->lane = lane;
  made->state = state;
  made->band = band;
  made->extras_ = std::move(extras_);
  return made;
}

bool Job::comes_after(Bytes id) const {
  const JobOptions* given = options();
  if (given == nullptr || given->after_count == 0) return false;
  const std::span<const std::string> ids = given->by_after();
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

void JobLog::write(uint64_t at, Bytes more, uint64_t kept_from) {
  if (at > end()) {
    offset = at;
    bytes.clear();
  }
  more.remove_prefix(std::min<uint64_t>(end() - at, more.size()));
  if (kept_from > offset) {
    const size_t held = std::min<uint64_t>(kept_from - offset, bytes.size());
    more.remove_prefix(std::min<uint64_t>(kept_from - offset - held, more.size()));
    bytes.erase(0, held);
    offset = kept_from;
  }
  bytes.append(more);
}

void Job::make_extras() {
  auto extras = std::make_unique<JobExtras>();
  // The values that the header has implied so far.
  extras->enqueued_ms = rank;
  extras->release_ms = rank;
  extras_ = std::move(extras);
}

uint64_t Job::retained_bytes() const {
  const JobExtras& extras = *extras_;
  uint64_t bytes = uint64_t{id_size_} + payload_size_ + extras.end->result.size() +
                   extras.progress.size() + extras.error.size() + lane->group->name.size();
  for (const Key* key : lane->keys->keys) bytes += key->name.size();
  if (extras.log != nullptr) bytes += extras.log->bytes.size();
  if (extras.options == nullptr) return bytes;
  for (const std::string& need : extras.options->needs) bytes += need.size();
  for (const auto& [name, value] : extras.options->tags) bytes += name.size() + value.size();
  return bytes;
}

size_t Job::extras_bytes() const {
  size_t bytes = sizeof(JobExtras) + extras_->error.capacity() + extras_->progress.capacity();
  if (extras_->options) bytes += sizeof(JobOptions);
  if (extras_->run) bytes += sizeof(JobRun);
  if (extras_->end) bytes += sizeof(JobEnd) + extras_->end->result.capacity();
  if (extras_->log) bytes += sizeof(JobLog) + extras_->log->bytes.capacity();
  if (extras_->successor) {
    bytes += sizeof(JobSuccessor) + extras_->successor->payload.capacity();
  }
  return bytes;
}

}  // namespace sluice
