// GroupWait: why a node waits for the replicated log, in words. Its log says so as well, every
// kSayMs at most.
//
// Used by the group's thread. Times are milliseconds of CLOCK_BOOTTIME.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "storage/log_sink.h"
#include "storage/remote_log.h"

namespace sluice {

class GroupWait {
 public:
  static constexpr int64_t kSayMs = 5000;

  explicit GroupWait(LogSink log) : log_(std::move(log)) {}

  // The log is not followed, until follows().
  void lose(const std::string& why, int64_t now_ms) {
    lost_ = why;
    say(why, now_ms);
  }
  void follows() { lost_.clear(); }
  // The answer to a change. A log that is read and followed may refuse every change: it is full, or
  // the user's rights have changed. `says`: this node serves nobody meanwhile.
  void note(const RemoteAnswer& answer, bool says, int64_t now_ms) {
    refused_ = is_heard(answer) ? "" : no_answer(answer).message();
    if (says && !refused_.empty()) say(refused_, now_ms);
  }

  void say(const std::string& why, int64_t now_ms) {
    if (now_ms < say_at_ms_) return;
    say_at_ms_ = now_ms + kSayMs;
    if (log_) log_(LogLevel::kWarning, "waiting: " + why);
  }

  // What lose() and note() tell; empty: nothing.
  const std::string& text() const { return lost_.empty() ? refused_ : lost_; }

 private:
  const LogSink log_;
  std::string lost_;
  std::string refused_;
  int64_t say_at_ms_ = INT64_MIN;
};

}  // namespace sluice
