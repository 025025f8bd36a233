// BlockedClient: the bookkeeping of a session whose client is blocked, by a command or by CLIENT
// PAUSE: it is counted, and has an entry among the thread's time-outs.
#pragma once

#include <cstdint>
#include <optional>

#include "net/io/counted.h"

namespace sluice {

class IoThread;
class Session;

class BlockedClient {
 public:
  BlockedClient(IoThread& thread, Session& session);

  // Session::on_block_timeout is called after this time; none: never.
  void begin(std::optional<int64_t> wait_ms);
  // False: it was not blocked.
  bool end();
  // The thread has dropped the entry, since its time has come.
  void timed_out() { deadline_ms_ = 0; }

 private:
  IoThread& thread_;
  Session& session_;
  Counted counted_;
  int64_t deadline_ms_ = 0;  // of the steady clock; 0: there is no entry
};

}  // namespace sluice
