// ACL LOG: refused commands and failed logins.
//
// Thread-safe, under a mutex, which only refusals take.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/mutex.h"

namespace sluice {

enum class AclLogContext : uint8_t { kTopLevel, kMulti, kLua };

struct AclLogEntry {
  // "command", "key", "channel" or "auth".
  const char* reason = "";
  AclLogContext context = AclLogContext::kTopLevel;
  std::string object;    // the full command name, the key or the channel; for a login the command
  std::string username;  // the refused user, or the user whose password was wrong
  std::string client;    // a line as in CLIENT INFO
  int64_t at_ms = 0;     // time of the last refusal, by the steady clock
  uint64_t count = 1;    // equal refusals share one entry
};

class AclLog {
 public:
  // Adds the entry. If an equal one of the last minute is among the newest, its count is
  // incremented instead. The oldest entries beyond `most` are dropped.
  void add(AclLogEntry entry, size_t most);
  // The newest entries first.
  std::vector<AclLogEntry> newest(size_t count) const;
  void reset();

 private:
  mutable Mutex mutex_;
  std::deque<AclLogEntry> entries_ GUARDED_BY(mutex_);  // the newest entry first
};

}  // namespace sluice
