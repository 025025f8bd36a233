// LogTrim: up to where the replicated log is trimmed, and may be: every node that needs what is
// before finds it in a checkpoint.
//
// Used by the group's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/ports/group_port.h"
#include "storage/group_keys.h"

namespace sluice {

class LogTrim {
 public:
  // Places are remembered so many frames or bytes apart, and so many of them.
  static constexpr uint64_t kStepFrames = 16;
  static constexpr uint64_t kStepBytes = uint64_t{64} << 10;
  static constexpr size_t kMaxPlaces = 8192;

  // What keeps the log from being trimmed any further, in words, and where.
  struct Limit {
    Lsn lsn = 0;
    std::string why;
  };

  // The mark as it stands: its text, which is what the log compares, and what it says.
  void set_mark(std::string text);
  const std::string& mark_text() const { return mark_text_; }
  const LogPosition& mark() const { return mark_; }

  // A place behind a commit that this node has applied, or that is acknowledged.
  void note(const LogPosition& place);
  // At or before the beginning of the `copies` newest checkpoints on different nodes, before every
  // hold, and before what any live node still applies. Those that are `hanging` count as dead,
  // since what waits for them waits for ever: they load a copy when they continue.
  static Limit limit(std::vector<GroupMember> members, std::map<std::string, Lsn> holds,
                     size_t copies, const std::set<std::string>& hanging);
  // The last place that may be trimmed up to. Nothing if it would not be behind the mark.
  std::optional<LogPosition> target(const Limit& limit) const;
  // LogPosition::bytes of the last known place at or before `lsn`; 0 if none is known.
  uint64_t bytes_at(Lsn lsn) const;
  // It was trimmed up to there.
  void forget(uint64_t seq);

 private:
  // Null if none is known.
  const LogPosition* place_at(Lsn lsn) const;

  std::string mark_text_;  // empty: it was never put
  LogPosition mark_;
  std::deque<LogPosition> places_;
};

}  // namespace sluice
