#include "engine/queue/progress_pace.h"

namespace sluice {

namespace {

// A node of the map, and an element of the deque.
constexpr size_t kEntryBytes = 128;

}  // namespace

bool ProgressPace::owe(Bytes id) {
  if (owed_.empty()) return false;
  const auto found = owed_.find(std::string(id));
  if (found == owed_.end()) return false;
  found->second = true;
  return true;
}

void ProgressPace::begin(Bytes id, int64_t now_ms) {
  owed_.emplace(id, false);
  due_.emplace_back(now_ms + kIntervalMs, id);
}

std::optional<ProgressPace::Over> ProgressPace::take_over(int64_t now_ms) {
  if (due_.empty() || due_.front().first > now_ms) return std::nullopt;
  Over over{std::move(due_.front().second), false};
  due_.pop_front();
  const auto found = owed_.find(over.id);
  over.owed = found->second;
  owed_.erase(found);
  return over;
}

size_t ProgressPace::memory_bytes() const {
  size_t bytes = due_.size() * kEntryBytes;
  for (const auto& [due_ms, id] : due_) bytes += 2 * id.size();
  return bytes;
}

}  // namespace sluice
