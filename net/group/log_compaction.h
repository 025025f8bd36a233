// LogCompaction: when the primary lets the replicated log forget older revisions though nothing was
// trimmed, and up to which one. Each beat and record makes a revision, which the service keeps
// until then: a group in which nothing is written would fill it.
//
// Used by the group's thread. Times are milliseconds of CLOCK_BOOTTIME.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

namespace sluice {

class LogCompaction {
 public:
  // Also how old a revision is before it is forgotten: a reader at one has ended, or reads again.
  static constexpr int64_t kEveryMs = 60'000;

  // The log is, or was a short time ago, at `revision`. Returns the one to compact to, if it is
  // time to.
  std::optional<int64_t> next(int64_t revision, int64_t now_ms) {
    if (revision == 0 || now_ms < due_ms_) return std::nullopt;
    due_ms_ = now_ms + kEveryMs;
    const std::optional<int64_t> then = std::exchange(revision_, revision);
    // It is smaller where the service was restored from a backup.
    return then.has_value() && *then <= revision ? then : std::nullopt;
  }
  // It was trimmed, and with that compacted.
  void on_trimmed(int64_t now_ms) {
    due_ms_ = now_ms + kEveryMs;
    revision_.reset();
  }

 private:
  int64_t due_ms_ = INT64_MIN;
  std::optional<int64_t> revision_;  // of kEveryMs before due_ms_; nothing: not known
};

}  // namespace sluice
