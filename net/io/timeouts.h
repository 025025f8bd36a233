// Timeouts: the time-outs of blocked commands of an I/O thread's sessions, with one timer for the
// first of them. Used by the I/O thread.
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

  // Calls Session::on_block_timeout at this time, unless remove() is called before.
  void add(int64_t at_ms, Session& session);
  void remove(int64_t at_ms, Session& session);
  // Runs the time-outs that are due, as many as fit into a turn.
  void run();

 private:
  void arm();

  IoThread& thread_;
  std::set<std::pair<int64_t, Session*>> entries_;
  SteadyTimer timer_;
  int64_t armed_ms_ = kNeverMs;
};

}  // namespace sluice
