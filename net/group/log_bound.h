// LogBound: how full the replicated log is, and what follows from it (`journal-log-bytes`). From
// 50 % on new checkpoints are made and one copy of them is enough, so that the log can be trimmed;
// from 75 % on commands that grow the data are refused, from 95 % on all changes. Each of it ends
// by itself when the log was trimmed.
//
// Used by the group's thread. Times are milliseconds of CLOCK_BOOTTIME.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/ports/group_port.h"
#include "net/group/group_inbox.h"
#include "storage/log_sink.h"
#include "storage/remote_log.h"

namespace sluice {

class LogBound {
 public:
  // How often the service is asked how large it may be.
  static constexpr int64_t kAskMs = 60'000;
  static constexpr int64_t kAskAgainMs = 1000;  // when it has not answered

  LogBound(RemoteLog& log, GroupInbox& inbox, uint64_t limit_bytes, LogSink sink)
      : log_(log), inbox_(inbox), configured_(limit_bytes), sink_(std::move(sink)) {}

  // Asks the service, if it is time to: the log may fill half of it.
  void step(int64_t now_ms);
  // The log holds so many bytes. `leads`: this node writes it; nobody else refuses or warns.
  // `kept_by`: what keeps it from being trimmed, in words. True if room() may have changed.
  bool note(uint64_t bytes, bool leads, const std::string& kept_by);

  uint64_t bytes() const { return bytes_; }
  uint64_t limit_bytes() const { return std::min(configured_, allowed()); }
  // What the service's members told the last time: the size of the largest database, and the least
  // quota. 0: not told.
  uint64_t service_bytes() const { return service_bytes_; }
  uint64_t service_quota_bytes() const { return quota_; }
  // Whether so many bytes are half of what the log may hold, or more.
  bool is_half(uint64_t bytes) const;
  LogRoom room() const;

 private:
  // Half of the quota, as far as it is known.
  uint64_t allowed() const { return quota_ == 0 ? UINT64_MAX : quota_ / 2; }
  void on_status(const std::vector<RemoteMember>& members);
  void say(bool fuller, const std::string& kept_by) const;

  RemoteLog& log_;
  GroupInbox& inbox_;
  const uint64_t configured_;
  const LogSink sink_;
  uint64_t service_bytes_ = 0;
  uint64_t quota_ = 0;  // of the service; 0: it has not told it
  int64_t ask_at_ms_ = INT64_MIN;
  uint64_t bytes_ = 0;
  size_t passed_ = 0;  // bounds, by the primary
};

}  // namespace sluice
