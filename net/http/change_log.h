// ChangeLog: who changed what over HTTP, and when, for people who find a queue paused or a job
// gone.
//
// It keeps the last kMost changes since the server's start, each in bounded memory: the command
// that a handler ran, shortened except for the names of its queue and job, which come from the
// request's path or are ids. One that is run again for another job, or for more of those that a
// filter chooses, raises the count of the change before it. Jobs that services add and workers take
// are no such changes. Any thread.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "engine/base/mutex.h"
#include "net/http/tokens.h"
#include "net/resp/resp_value.h"

namespace sluice {

struct Change {
  int64_t at_ms = 0;  // of the last command
  std::string user;   // whose rights it had
  std::string token;  // its id; empty: a log-in by password
  int database = 0;
  std::vector<std::string> words;
  int64_t count = 0;  // of what has changed
};

class ChangeLog {
 public:
  static constexpr size_t kMost = 200;
  static constexpr size_t kMostWords = 24;
  static constexpr size_t kMostWordBytes = 128;
  // Commands further apart are two changes.
  static constexpr int64_t kTogetherMs = 60'000;

  // What the reply to a command says that an operator has changed by it; 0: nothing.
  static int64_t count_of(std::span<const std::string> words, const RespValue& reply);

  void add(const Principal& principal, int database, std::span<const std::string> words,
           int64_t count, int64_t now_ms);
  // The newest first.
  std::vector<Change> newest() const;

 private:
  mutable Mutex mutex_;
  std::deque<Change> changes_ GUARDED_BY(mutex_);
};

}  // namespace sluice
