// The entries of SLOWLOG, and the connections of MONITOR.
//
// Both are shared by all threads under their own mutex; the flags that the hot path reads are
// atomics.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/mutex.h"
#include "engine/unit/unit.h"

namespace sluice {

struct Command;
class ServerPort;

struct SlowEntry {
  uint64_t id = 0;
  int64_t unix_s = 0;
  int64_t duration_us = 0;
  std::vector<std::string> arguments;  // truncated as in Redis: 32 arguments of 128 bytes
  uint64_t client_id = 0;
  std::string client_address;
  std::string client_name;
};

class SlowLog {
 public:
  void add(std::span<const Bytes> args, int64_t now_ms, int64_t duration_us, uint64_t client_id,
           Bytes client_address, Bytes client_name, size_t max_entries);
  // The newest entries first.
  std::vector<SlowEntry> newest(size_t count) const;
  size_t size() const;
  void reset();

 private:
  mutable Mutex mutex_;
  std::deque<SlowEntry> entries_ GUARDED_BY(mutex_);
  uint64_t next_id_ GUARDED_BY(mutex_) = 0;
};

class Monitors {
 public:
  bool active() const { return count_.load(std::memory_order_relaxed) != 0; }
  void add(uint64_t client_id, std::shared_ptr<ClientPort> port);
  void remove(uint64_t client_id);
  // One line: `+<time> [db address] "command" "argument" ...`. The unit keeps it until its lsn is
  // known, so that a crash never takes back what a monitor has been shown.
  static void show(int64_t unix_us, int database, Bytes source, std::span<const Bytes> args,
                   Unit& unit);
  // Delivers the unit's lines to every monitor.
  void deliver(Bytes lines, Lsn gate);

 private:
  struct Monitor {
    uint64_t client_id;
    std::shared_ptr<ClientPort> port;
  };
  Mutex mutex_;
  std::vector<Monitor> monitors_ GUARDED_BY(mutex_);
  std::atomic<size_t> count_{0};
};

// The arguments with `(redacted)` in place of passwords, secret parameters and users' rules.
std::vector<Bytes> without_secrets(const ServerPort& server, const Command& command,
                                   std::span<const Bytes> args);

// A byte string in quotes with escapes, as in redis-cli and MONITOR.
std::string quoted(Bytes bytes);

}  // namespace sluice
