// BlockedClient: the bookkeeping for a session whose client is blocked by a command or by CLIENT
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

  // Calls Session::on_block_timeout after this time; nothing: never.
  void begin(std::optional<int64_t> wait_ms);
  // Returns false if the client was not blocked.
  bool end();
  // Called when the thread has removed the entry because its time has come.
  void timed_out() { deadline_ms_ = 0; }

 private:
  IoThread& thread_;
  Session& session_;
  Counted counted_;
  int64_t deadline_ms_ = 0;  // by the steady clock; 0: no entry
};

}  // namespace sluice
