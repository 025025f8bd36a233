// Session: one connection. Reads requests, runs them in batches through its I/O thread's Execution,
// and sends the replies in order, each when the journal holds what it reports.
//
// Threads and lifetime: belongs to one IoThread for life, which owns it; other threads only hold
// its SessionPort. After close() it is buried: the I/O thread destroys it at the end of the turn,
// when no event can refer to it any more. While it executes, only a nested poll of the same thread
// can call it, and such calls are deferred.
//
// Its parts: received input (InputBuffer), output (OutputBuffer), reported socket events
// (SocketEdges), and the state of a blocked client (BlockedClient). With TLS, `tls_` reads and
// writes instead of the socket; without, it is null, which costs one branch for each read and
// write.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/clients/client.h"
#include "engine/execution/request.h"
#include "engine/reply/reply.h"
#include "net/io/blocked_client.h"
#include "net/io/counted.h"
#include "net/io/input_buffer.h"
#include "net/io/output_buffer.h"
#include "net/io/request_batch.h"
#include "net/io/session_port.h"
#include "net/io/socket_edges.h"
#include "net/resp/resp_parser.h"

namespace sluice {

class IoThread;
class TlsStream;

// The stages in the life of a session, which only advance.
class SessionLife {
 public:
  // Accepts no more requests; closes when all output has been sent.
  void drain() { advance(At::kDraining); }
  // Does nothing more; the end of its batch or of the turn closes it.
  void end() { advance(At::kEnding); }
  void close() { advance(At::kClosed); }

  bool is_open() const { return at_ == At::kOpen; }
  bool is_draining() const { return at_ == At::kDraining; }
  bool is_ending() const { return at_ >= At::kEnding; }
  bool is_closed() const { return at_ == At::kClosed; }

 private:
  enum class At : uint8_t { kOpen, kDraining, kEnding, kClosed };

  void advance(At to) {
    if (at_ < to) at_ = to;
  }

  At at_ = At::kOpen;
};

// Whether the reply that ends a blocked command is sent. CLIENT REPLY SKIP applies to one reply
// only.
bool wants_blocked_reply(Client& client);

class Session {
 public:
  // Takes ownership of `fd`, a connected, non-blocking socket.
  Session(IoThread& thread, int fd, Endpoints endpoints);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void start();
  // Called with the events reported by the poller.
  void on_events(uint32_t events);
  // Its next turn, after SocketTurn::add_continuing.
  void go_on();
  // Takes mail of other threads. write_out() follows once for all mail of a turn.
  void take_mail(Mail& mail);
  // Writes what may be sent, and continues what had to wait for that.
  void write_out();
  // The reason for pausing reads may be over.
  void resume();
  void on_block_timeout();
  // CLIENT PAUSE has begun or ended: check postponed requests again.
  void on_pause_changed();
  // Rules of users have changed: ends a wait that the user may no longer begin. REQUIRES: the
  // outermost level.
  void on_rights_changed();
  // The journal has failed: waiting replies are replaced by an error, and the connection ends.
  void on_journal_failed();
  // Accepts no more requests; closes when the replies have been sent.
  void begin_stop();
  void close();
  // Called once a second with the steady time: checks limits that depend on time.
  void check_time_limits(int64_t now_ms);

  // Publishes the connection's present state for other threads (SessionPort::facts).
  void publish();

  bool closed() const { return life_.is_closed(); }
  // The time of its last activity, by the steady clock.
  int64_t active_ms() const { return active_ms_; }
  const OutputBuffer& output() const { return output_; }
  const std::shared_ptr<SessionPort>& port() const { return port_; }

  // Its places in the I/O thread's lists. Written by the thread.
  struct Places {
    size_t index = 0;  // among all sessions
    bool gated = false;
    bool paused = false;
    bool dirty = false;
    bool to_close = false;
    bool continuing = false;
  };
  Places places;
  int64_t stranger_since_ms = 0;  // used by Strangers

 private:
  // kMoreWaits: complete requests wait for the next turn.
  enum class Run : uint8_t { kIdle, kExecuting, kMoreWaits };

  // --- Requests (net/io/session.cc) ---
  void advance();
  void run_requests();
  bool run_one(RequestBatch& batch, RespReply& reply);
  void update_parser_limits();
  bool handle_end(RequestBatch& batch, RespReply& reply);
  void execute(const Request& request, RespReply& reply);
  void execute_in_block(const RequestBatch::Item& item, RespReply& reply);
  void after_batch();

  // --- Blocking (net/io/session_blocking.cc) ---
  bool postpone(const Request& request);
  bool run_postponed(RespReply& reply);
  void end_blocking();
  void end_wait(Bytes error);

  // --- Input and output (net/io/session_input.cc, net/io/session_output.cc) ---
  bool may_read();
  void read_input();
  void gate_output(Lsn gate);
  void flush();
  bool write_some();
  void check_output_limits();

  // --- The end (net/io/session_end.cc) ---
  void close_soon();
  void check_handshake(int64_t now_ms);

  IoThread& thread_;
  int fd_;
  std::unique_ptr<TlsStream> tls_;
  std::shared_ptr<SessionPort> port_;
  Client client_;
  RespParser parser_;
  SocketEdges edges_;
  InputBuffer input_;
  OutputBuffer output_;
  SessionLife life_;
  Run run_ = Run::kIdle;
  BlockedClient blocked_;
  Counted counted_pubsub_;
  // Mail that arrived while it was executing.
  std::vector<Mail> put_off_;
  // The request that waits for the end of CLIENT PAUSE (Client::postponed). `due`: it is to be
  // retried.
  struct Postponed {
    std::vector<std::string> words;
    bool due = false;
  };
  Postponed postponed_;
  int64_t active_ms_ = 0;  // by the steady clock
  // The server cannot answer for its data in this batch (net/group/serving_gate.h).
  bool gate_closed_ = false;
};

}  // namespace sluice
