// ACL LOG: what users were refused, and logins that failed.
//
// Any thread, under a mutex; only a refusal comes here.
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
  std::string object;    // the command's full name, the key, the channel; of a login the command
  std::string username;  // who was refused, or whose password was wrong
  std::string client;    // a line as CLIENT INFO has it
  int64_t at_ms = 0;     // when the last refusal was, by the steady clock
  uint64_t count = 1;    // equal refusals are one entry
};

class AclLog {
 public:
  // Counts it with an equal one of the last minute, if that is among the newest; else the oldest go
  // beyond `most`.
  void add(AclLogEntry entry, size_t most);
  // The newest first.
  std::vector<AclLogEntry> newest(size_t count) const;
  void reset();

 private:
  mutable Mutex mutex_;
  std::deque<AclLogEntry> entries_ GUARDED_BY(mutex_);  // the newest first
};

}  // namespace sluice
