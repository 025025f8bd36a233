// Session: one connection. Reads requests, runs them in batches through its I/O thread's Execution,
// and writes the replies in order, each not before the journal has what it reports.
//
// Threads and lifetime: belongs to one IoThread for life, which owns it; other threads know only
// its SessionPort. After close() it is buried: the I/O thread destroys it at the end of the turn,
// when no event can name it any more. Nothing here may run while it executes but what a nested poll
// of the same thread brings, and that is put off.
//
// Its parts: what has come in (InputBuffer), what is to leave (OutputBuffer), what the poller has
// told (SocketEdges), and that its client is blocked (BlockedClient). Over TLS `tls_` reads and
// writes in the place of the socket; without, that is a null pointer and one branch for each read
// and write.
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

// How far the life of a session has come; it only goes forward.
class SessionLife {
 public:
  // No more requests; closed when all output has left.
  void drain() { advance(At::kDraining); }
  // It does nothing any more: the end of its batch or of the turn closes it.
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

// Whether the reply that ends a blocking is sent. Is it the one to skip, those behind it are not.
bool wants_blocked_reply(Client& client);

class Session {
 public:
  // Takes over `fd`, a connected, non-blocking socket.
  Session(IoThread& thread, int fd, Endpoints endpoints);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void start();
  // What the poller reports.
  void on_events(uint32_t events);
  // Its next turn, after SocketTurn::add_continuing.
  void go_on();
  // Mail of other threads. write_out() afterwards, once for all mail of a turn.
  void take_mail(Mail& mail);
  // Writes what may leave, and goes on with what had to wait for that.
  void write_out();
  // The reason for which reading was paused may be over.
  void resume();
  void on_block_timeout();
  // CLIENT PAUSE has begun or ended: what waits for it looks again.
  void on_pause_changed();
  // The journal has failed: what waits for it is replaced by an error, and the connection ends.
  void on_journal_failed();
  // No more requests; closes once the replies have left.
  void begin_stop();
  void close();
  // Once a second, with the time of the steady clock: the limits that depend on it.
  void check_time_limits(int64_t now_ms);

  // Tells others what this connection is like now (SessionPort::facts).
  void publish();

  bool closed() const { return life_.is_closed(); }
  // When it last said something, by the steady clock.
  int64_t active_ms() const { return active_ms_; }
  const OutputBuffer& output() const { return output_; }
  const std::shared_ptr<SessionPort>& port() const { return port_; }

  // Where the I/O thread has it. The thread writes this.
  struct Places {
    size_t index = 0;  // among all sessions
    bool gated = false;
    bool paused = false;
    bool dirty = false;
    bool to_close = false;
    bool continuing = false;
  };
  Places places;
  int64_t stranger_since_ms = 0;  // Strangers

 private:
  // kMoreWaits: complete requests wait for the next turn.
  enum class Run : uint8_t { kIdle, kExecuting, kMoreWaits };

  // --- Requests (net/io/session.cc) ---
  void advance();
  bool may_execute() const;
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
  void unblock_by_command(bool with_error);

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
  // Mail that came while it executed.
  std::vector<Mail> put_off_;
  // The request that waits for the end of CLIENT PAUSE (Client::postponed); `due`: it is to be
  // tried again.
  struct Postponed {
    std::vector<std::string> words;
    bool due = false;
  };
  Postponed postponed_;
  int64_t active_ms_ = 0;  // of the steady clock
};

}  // namespace sluice
