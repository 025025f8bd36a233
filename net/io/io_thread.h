// IoThread: a thread with one Execution, and the sessions that belong to it for life.
//
// A turn: all readable sockets (net/io/poller.h) are read and their requests run, session by
// session; then sessions that had more requests than fit into a turn, and tasks; then the
// journal is flushed once for all of them; then the replies are written. Replies that must wait for
// a sync are sent when the journal reports it (durable_moved).
//
// Its parts have a header each: signals, mail, sessions and their sockets, the journal's gate,
// timers, and the levels of a polling script. Threads: members are used by the own thread only,
// except those under "Any thread". It must outlive every SessionPort of its sessions.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "engine/base/thread.h"
#include "net/io/asio_types.h"
#include "net/io/execution_levels.h"
#include "net/io/housekeeping.h"
#include "net/io/journal_gate.h"
#include "net/io/mailbox.h"
#include "net/io/server_state.h"
#include "net/io/session_port.h"
#include "net/io/socket_turn.h"
#include "net/io/thread_sessions.h"
#include "net/io/thread_signals.h"
#include "net/io/timeouts.h"
#include "net/io/turn_clock.h"

namespace sluice {

// A component on an I/O thread besides its sessions, with Asio's objects. Called by that thread.
class IoThreadGuest {
 public:
  virtual ~IoThreadGuest() = default;
  // Accept no more requests; end connections when their replies have been sent.
  virtual void begin_stop() = 0;
  // End now. Asio handlers that run later must find nothing to do.
  virtual void close_all() = 0;
};

template <class Connection>
class Strangers;

class IoThread {
 public:
  IoThread(ServerState& state, unsigned index, bool hold_shards);
  ~IoThread();
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  // --- Any thread ---
  // Throws like Thread.
  void start();
  // Takes ownership of a connected, non-blocking socket.
  void adopt(int fd, Endpoints endpoints);
  // Runs `task` on this thread.
  void post(std::function<void()> task) { tasks_.post(std::move(task)); }
  Mailbox& mailbox() { return mailbox_; }
  // The journal's durable lsn has moved. Several calls before it is processed cause one wake-up.
  void durable_moved() { signals_.raise(ThreadSignals::kDurableMoved); }
  // CLIENT PAUSE has begun or ended.
  void pause_changed();
  void rights_changed();
  // The journal has failed: clients waiting for it get an error and are closed.
  void journal_failed();
  // Accepts no more requests; sessions end when their replies have been sent, which idle() reports.
  void begin_stop();
  bool idle() const {
    return sessions_.count() == 0 && guest_connections.load(std::memory_order_acquire) == 0;
  }
  // The number of connections of the HTTP guest, written by the guest.
  std::atomic<size_t> guest_connections{0};
  // Called before start(). The guest is destroyed with this object.
  void add_guest(std::unique_ptr<IoThreadGuest> guest) { guests_.push_back(std::move(guest)); }
  // Closes what is left and ends the thread, as soon as a running command allows; see ended().
  void stop() { signals_.raise(ThreadSignals::kStop); }
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  // After stop(), called by the thread that called start().
  void join();
  // The calling I/O thread; null for other threads.
  static IoThread* current();

  // Written by this thread, readable by any.
  struct Counters {
    std::atomic<uint64_t> input_bytes{0};
    std::atomic<uint64_t> output_bytes{0};
    std::atomic<uint64_t> reads{0};
    std::atomic<uint64_t> writes{0};
  };
  Counters& counters() { return counters_; }
  // Any thread may call count() and ports().
  ThreadSessions& sessions() { return sessions_; }

  // --- The own thread ---
  ServerState& state() const { return state_; }
  Engine& engine() const { return *state_.engine; }
  // For Asio's objects of this thread.
  const IoExecutor& executor() const { return executor_; }
  TaskQueue& tasks() { return tasks_; }
  SocketTurn& sockets() { return sockets_; }
  TurnClock& clock() { return clock_; }
  ExecutionLevels& levels() { return levels_; }
  JournalGate& gate() { return gate_; }
  Timeouts& timeouts() { return timeouts_; }
  Housekeeping& housekeeping() { return housekeeping_; }
  // Sessions that have not authenticated although it is required.
  Strangers<Session>& strangers() { return *strangers_; }

  // Called after each batch of requests: wakes the due timer if something has become due earlier.
  void after_batch();
  // Runs `work` on the engine outside of a batch, at the present time, and flushes what it changes.
  // REQUIRES: no command runs on this thread.
  void run_between_batches(const std::function<void(Execution&)>& work);
  // Whether the server can answer for its data now; otherwise requests wait from now on, or are
  // refused with ServingGate::error(). REQUIRES: there is a gate, and the clock was read.
  bool passes_gate();
  // Serves sockets from inside a command that runs for too long. The caller holds shards, so
  // nothing that locks a shard may run: all but a few requests are refused, and ends of
  // connections, mail and timers wait until the command has ended.
  void poll_nested();

 private:
  void run();
  bool has_work() const;
  void turn(bool block);
  void take_signals();
  void deliver_mail();
  void after_nested();

  ServerState& state_;
  const unsigned index_;
  SocketTurn sockets_;
  ThreadSignals signals_;
  TaskQueue tasks_;
  const IoExecutor executor_;
  TurnClock clock_;
  ExecutionLevels levels_;
  JournalGate gate_;
  Mailbox mailbox_;
  ThreadSessions sessions_;
  std::unique_ptr<Strangers<Session>> strangers_;
  Timeouts timeouts_;
  Housekeeping housekeeping_;
  std::vector<std::unique_ptr<IoThreadGuest>> guests_;
  bool stopping_ = false;
  bool stop_wanted_ = false;
  bool nested_polled_ = false;
  std::atomic<bool> ended_{false};
  Counters counters_;
  Thread thread_;
};

}  // namespace sluice
