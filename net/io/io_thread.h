// IoThread: one thread with one io_context, one Execution, and the sessions that belong to it for
// life.
//
// A turn: all sockets that are readable now (net/io/poller.h) are read, and their requests run,
// session by session; then sessions that had more than fits a turn, and Asio's handlers; then the
// journal is flushed once for all of them; then the replies are written. What must wait for a sync
// leaves when the journal reports it (durable_moved). Writing last lets a client that has several
// connections here wake up once for many replies.
//
// Threads: members are used by the own thread only, but for those under "Any thread". The
// io_context is made without locks for its sockets (BOOST_ASIO_CONCURRENCY_HINT_UNSAFE_IO), and it
// runs only when the poller or post() say so: whoever has work for it calls post(), never
// asio::post(). It must outlive every SessionPort of its sessions.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engine/base/mutex.h"
#include "engine/base/thread.h"
#include "engine/execution/execution.h"
#include "net/io/asio_types.h"
#include "net/io/poller.h"
#include "net/io/request_batch.h"
#include "net/io/server_state.h"
#include "net/io/session_port.h"

namespace sluice {

// What lives on an I/O thread besides its sessions, on its Asio context. Called by that thread.
class IoThreadGuest {
 public:
  virtual ~IoThreadGuest() = default;
  // No more requests; connections end when their replies have left.
  virtual void begin_stop() = 0;
  // Now. Handlers of Asio that are still to come must find nothing to do.
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
  // Throws as Thread does.
  void start();
  // Takes over a connected, non-blocking socket.
  void adopt(int fd, Endpoints endpoints);
  void send_mail(Mail mail);
  // The journal's durable lsn has moved: one wake-up, however often it is called before it runs.
  void durable_moved();
  // Any thread: CLIENT PAUSE has begun or ended.
  void pause_changed();
  // The journal has failed: whoever waits for it is told so and closed.
  void journal_failed();
  // Runs `task` on this thread. For rare things.
  void post(std::function<void()> task);
  // No more requests; sessions end when their replies have left. idle() says when that is.
  void begin_stop();
  bool idle() const {
    return session_count_.load(std::memory_order_acquire) == 0 &&
           guest_connections.load(std::memory_order_acquire) == 0;
  }
  // How many connections the HTTP guest has; it writes it.
  std::atomic<size_t> guest_connections{0};
  // Before start(). Destroyed with this thread's object.
  void add_guest(std::unique_ptr<IoThreadGuest> guest) { guests_.push_back(std::move(guest)); }
  // Closes what is left and ends the thread. ended() says when a command that runs lets it.
  void stop();
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  // After stop(), by the thread that called start().
  void join();

  size_t session_count() const { return session_count_.load(std::memory_order_relaxed); }
  // In no order.
  std::vector<std::shared_ptr<SessionPort>> ports() const;
  // The I/O thread that calls; null for other threads.
  static IoThread* current();

  // Written by this thread, read by any.
  struct Counters {
    std::atomic<uint64_t> input_bytes{0};
    std::atomic<uint64_t> output_bytes{0};
    std::atomic<uint64_t> reads{0};
    std::atomic<uint64_t> writes{0};
  };
  Counters& counters() { return counters_; }

  // --- The own thread ---
  asio::io_context& context() { return context_; }
  Poller& poller() { return poller_; }
  // For how long it has had nothing to do, in all.
  int64_t idle_us() const { return poller_.idle().count(); }
  // The sockets' turn is being taken: replies leave at its end.
  bool in_turn() const { return in_turn_; }
  ServerState& state() { return state_; }
  const ServerState& state() const { return state_; }
  Engine& engine() { return *state_.engine; }
  // The execution and batch of this depth: a script that polls (poll_nested) holds the outer ones.
  Execution& execution() { return *levels_[depth_]->execution; }
  RequestBatch& batch() { return levels_[depth_]->batch; }
  // Alone with the engine, so that it may look at the shards without their locks
  // (engine/execution/prefetch.h).
  bool may_prefetch() const { return hold_shards_ && depth_ == 0; }

  // The times of the current handler, read once a batch. read_clock() says the wall clock's.
  int64_t read_clock();
  const Times& times() const { return times_; }
  int64_t now_ms() const { return times_.wall_ms; }
  // The same moment by the steady clock, which goes on before the engine serves, too.
  int64_t now_steady_ms() const { return state_.clocks.steady_ms_at(times_); }
  int64_t serving_ms() const { return times_.steady_ms; }
  Lsn durable_lsn() const {
    const GroupCommitJournal* journal = state_.journal.load(std::memory_order_relaxed);
    return journal != nullptr ? journal->durable_lsn() : ~Lsn{0};
  }
  // Too much waits for the kernel: sessions stop reading and ask for resume_reading.
  bool journal_congested() const;

  // The session has replies that wait for the end of the turn or for the journal / that waits to
  // read / that goes on in the next turn (Session::go_on) / that has ended.
  void add_gated(Session& session);
  void add_paused(Session& session);
  void add_continuing(Session& session);
  void bury(Session& session);
  // Ends `session`'s blocking at this time, unless remove_timeout comes first.
  void add_timeout(int64_t at_ms, Session& session);
  void remove_timeout(int64_t at_ms, Session& session);
  // Somebody waits for the journal: flush it once, when all sessions of this turn have run.
  void request_end_of_turn() { flush_wanted_ = true; }
  // Calls `then` once the journal has made `gate` durable: true, or has failed: false. At once if
  // it has already; else from the end of a turn. For what is rare: sessions have their own way.
  void when_durable(Lsn gate, std::function<void(bool durable)> then);
  // Runs `task` at once, or when the command that polls (poll_nested) is over.
  void run_outermost(std::function<void()> task);
  // Each session calls it when its batch is done.
  void after_batch();
  // Sessions that have not authenticated where it is asked for.
  Strangers<Session>& strangers() { return *strangers_; }
  // Sessions over a soft output limit, or idle for too long, are looked at once a second while
  // there is reason to.
  void need_housekeeping();

  // Serves sockets from inside a command that runs for too long. The caller holds shards, so
  // nothing that locks one may run meanwhile: requests are refused but for a few, and ends of
  // connections, mail and timers wait until the command is over.
  void poll_nested();
  bool nested() const { return depth_ != 0; }
  // The session ends in this turn or a later one, when no command polls.
  void close_later(Session& session);
  // Of those that end in a turn the first few need not wait for its end.
  bool may_close_now();

 private:
  struct Level {
    explicit Level(Engine& engine) : execution(std::make_unique<Execution>(engine)) {}
    std::unique_ptr<Execution> execution;
    RequestBatch batch;
  };

  // What other threads tell this one, as bits of signals_.
  enum Signal : uint32_t {
    kMailWaits = 1U << 0,
    kDurableMoved = 1U << 1,
    kTaskPosted = 1U << 2,
    kStop = 1U << 3,
  };

  void run();
  void signal(Signal what);
  bool has_work() const;
  void turn(bool block);
  void take_signals();
  void run_sockets(std::span<const epoll_event> events);
  void run_handlers();
  void end_turn();
  void take_connection(int fd, Endpoints endpoints);
  void add_level();
  void drain_mail();
  void write_gated();
  void write_mailed();
  void tell_durable();
  void resume_paused();
  void sweep();
  void arm_timeouts();
  void on_timeouts();
  void after_nested();
  void close_ended();
  // Expiries that are due earlier than the timer is set for.
  void check_due();
  void housekeep();

  ServerState& state_;
  const unsigned index_;
  asio::io_context context_;
  asio::executor_work_guard<IoExecutor> work_;
  Poller poller_;
  std::vector<std::unique_ptr<Level>> levels_;
  size_t depth_ = 0;
  bool hold_shards_;
  Times times_;
  bool stopping_ = false;

  std::vector<std::unique_ptr<Session>> sessions_;
  std::vector<Session*> gated_;
  // The same of those that mail has given something: Places::gated means either.
  std::deque<Session*> mailed_;
  std::vector<Session*> paused_;
  std::vector<Session*> continuing_;
  std::vector<Session*> graveyard_;
  std::deque<Session*> to_close_;
  // Connections, since close_ended() ran last.
  size_t opened_ = 0;
  size_t closed_at_once_ = 0;
  std::unique_ptr<Strangers<Session>> strangers_;
  struct DurableWait {
    Lsn gate;
    std::function<void(bool durable)> then;
  };
  std::vector<DurableWait> durable_waits_;
  std::vector<std::function<void()>> outermost_tasks_;
  std::vector<std::unique_ptr<IoThreadGuest>> guests_;
  // Kept for their capacity.
  std::vector<Session*> gated_at_hand_;
  std::vector<Session*> dirty_at_hand_;
  bool in_turn_ = false;
  // What the poller reported in this turn, and how far it has been taken.
  std::vector<epoll_event> events_at_hand_;
  size_t next_event_ = 0;
  bool flush_wanted_ = false;
  bool handlers_wait_ = false;
  bool takes_mail_ = false;
  bool writes_wait_ = false;  // more of mailed_ may leave than the turn has written
  bool nested_polled_ = false;
  bool stop_wanted_ = false;
  std::set<std::pair<int64_t, Session*>> timeouts_;
  SteadyTimer timeout_timer_;
  int64_t timeout_armed_ms_ = kNeverMs;
  SteadyTimer housekeeping_timer_;
  bool housekeeping_ = false;
  SteadyTimer paused_timer_;

  Mutex mail_mutex_;
  std::vector<Mail> mail_ GUARDED_BY(mail_mutex_);
  std::vector<Mail> mail_at_hand_;  // being delivered; its memory goes with each
  size_t next_mail_ = 0;            // of mail_at_hand_
  std::atomic<uint32_t> signals_{0};
  std::atomic<size_t> session_count_{0};
  std::atomic<bool> ended_{false};
  mutable Mutex registry_mutex_;
  std::unordered_set<std::shared_ptr<SessionPort>> registry_ GUARDED_BY(registry_mutex_);
  Counters counters_;
  Thread thread_;
};

}  // namespace sluice
