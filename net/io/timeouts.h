// Timeouts: when the blocked commands of an I/O thread's sessions time out, and one timer for the
// first of them. The I/O thread's.
#pragma once

#include <cstdint>
#include <set>
#include <utility>

#include "engine/keyspace/shard.h"
#include "net/io/asio_types.h"

namespace sluice {

class IoThread;
class Session;

class Timeouts {
 public:
  explicit Timeouts(IoThread& thread);

  // Calls Session::on_block_timeout at this time, unless remove() comes first.
  void add(int64_t at_ms, Session& session);
  void remove(int64_t at_ms, Session& session);
  // Those whose time has come, as many as fit a turn.
  void run();

 private:
  void arm();

  IoThread& thread_;
  std::set<std::pair<int64_t, Session*>> entries_;
  SteadyTimer timer_;
  int64_t armed_ms_ = kNeverMs;
};

}  // namespace sluice
