// PauseWish: the pause that a command of this node has asked for, on its way to the log. The newest
// one counts, by its number: it is sent until the log has answered, one request at a time, and what
// the log carries out late replaces nothing that is newer. Of what several nodes ask for at once,
// the greatest number counts.
//
// Threads: any. It lives until the log is closed: requests keep it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "engine/base/mutex.h"
#include "storage/group_keys.h"
#include "storage/log_sink.h"
#include "storage/remote_log.h"

namespace sluice {

class PauseWish : public std::enable_shared_from_this<PauseWish> {
 public:
  // After this time without an answer, and at the log's end, the wish is given up with a warning.
  static constexpr int64_t kPatienceMs = 10'000;

  // `now_ms`: CLOCK_BOOTTIME.
  PauseWish(RemoteLog& log, std::function<int64_t()> now_ms, LogSink sink)
      : log_(log), now_ms_(std::move(now_ms)), sink_(std::move(sink)) {}

  // The number of `value` becomes greater than those of earlier wishes, if it is not.
  void put(PauseValue value) EXCLUDES(mutex_);

 private:
  void send() EXCLUDES(mutex_);
  void on_answer(const RemoteAnswer& answer, uint64_t number) EXCLUDES(mutex_);

  RemoteLog& log_;
  const std::function<int64_t()> now_ms_;
  const LogSink sink_;
  Mutex mutex_;
  PauseValue value_ GUARDED_BY(mutex_);
  int64_t give_up_ms_ GUARDED_BY(mutex_) = 0;
  bool is_out_ GUARDED_BY(mutex_) = false;  // a request is
};

}  // namespace sluice
