// Session: one connection. Reads requests, runs them in batches through its I/O thread's Execution,
// and writes the replies in order, each not before the journal has what it reports.
//
// Threads and lifetime: belongs to one IoThread for life, which owns it; other threads know only
// its SessionPort. After close() it is buried: the I/O thread destroys it at the end of the turn,
// when no event can name it any more. Nothing here may run while `executing_`
// but what a nested poll of the same thread brings, and that is put off.
//
// Output is one buffer: [0, sent_) has left, [sent_, sendable_) may leave, and each segment says up
// to where the rest may leave once its lsn is durable. Gates never decrease, so a prefix leaves at
// a time. Events are edges (net/io/poller.h): `readable_` stays set until a read has found the end.
//
// Over TLS `tls_` reads and writes in the place of the socket; without, that is a null pointer and
// one branch for each read and write.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/clients/client.h"
#include "engine/execution/request.h"
#include "engine/reply/reply.h"
#include "net/io/asio_types.h"
#include "net/io/request_batch.h"
#include "net/io/server_state.h"
#include "net/io/session_port.h"
#include "net/resp/resp_parser.h"

namespace sluice {

class IoThread;
class TlsStream;

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
  // Its next turn, after IoThread::add_continuing.
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

  bool closed() const { return closed_; }
  // When it last said something, by the steady clock.
  int64_t active_ms() const { return active_ms_; }
  bool is_continuing() const { return continuing_; }
  bool waits_for_journal() const { return !segments_.empty() && !closed_; }
  // Some of what waited for the journal may leave.
  bool is_released() const;
  const std::shared_ptr<SessionPort>& port() const { return port_; }

  // Lists of the I/O thread that this session is in.
  bool in_gated = false;
  bool in_paused = false;
  bool in_dirty = false;
  bool in_to_close = false;
  size_t index = 0;
  int64_t stranger_since_ms = 0;  // Strangers

 private:
  bool ending() const { return closed_ || to_be_closed_; }

  struct Segment {
    size_t end;
    Lsn gate;
  };

  void advance();
  void continue_later();
  bool may_execute() const;
  void run_requests();
  bool run_one(RequestBatch& batch, RespReply& reply);
  void update_parser_limits();
  void note_stranger();
  bool parse(RequestBatch& batch);
  bool handle_end(RequestBatch& batch, RespReply& reply);
  void give_back(RequestBatch& batch);
  void execute(const Request& request, RespReply& reply);
  void end_muted();
  bool refuses_now(const Request& request) const;
  void after_batch();
  bool postpone(const Request& request);
  bool run_postponed(RespReply& reply);
  void wait_for_pause();
  void begin_blocking();
  void end_blocking();
  void close_soon();
  void leave_engine();
  void take_mail_now(Mail& mail);
  void unblock_by_command(bool with_error);
  bool wants_blocked_reply();
  void update_counts();

  // --- Output (net/io/session_output.cc) ---
  size_t pending_output() const { return out_.size() - sent_; }
  void gate_output(Lsn gate);
  void flush();
  bool write_some();
  void compact_output();
  void check_output_limits();
  OutputClass output_class() const;
  void drop_unread_input();

  // --- TLS (net/io/session_tls.cc) ---
  void begin_tls();
  void take_tls_edges();
  void check_handshake(int64_t now_ms);
  void end_tls();

  // --- Input (net/io/session_input.cc) ---
  bool may_read();
  void read_input();
  size_t choose_room();
  void enter_block(const RespParser::Argument& bulk);
  void begin_record(const RespParser::Argument& bulk);
  void go_on_with_record();
  void execute_in_block(const RequestBatch::Item& item, RespReply& reply);
  void leave_block();

  IoThread& thread_;
  int fd_;
  std::unique_ptr<TlsStream> tls_;
  std::shared_ptr<SessionPort> port_;
  Client client_;
  RespParser parser_;

  ByteBuffer in_;
  size_t in_begin_ = 0;     // the first byte of the next request
  bool in_block_ = false;   // in_ is the block of a large argument
  size_t block_begin_ = 0;  // where its request begins
  // The record of the SET that is coming in (LentWord::record): up to where in in_ it has the
  // value, and where that ends. Empty: there is none.
  ByteBuffer record_;
  size_t recorded_ = 0;
  size_t record_end_ = 0;
  size_t need_bytes_ = 1;
  size_t read_bytes_;
  ByteBuffer out_;
  size_t sent_ = 0;
  size_t sendable_ = 0;
  std::vector<Segment> segments_;
  std::vector<Mail> put_off_;
  // The request that waits for the end of CLIENT PAUSE (Client::postponed).
  std::vector<std::string> postponed_;

  int64_t active_ms_ = 0;  // of the steady clock
  int64_t block_deadline_ms_ = 0;
  int64_t soft_limit_since_ms_ = 0;
  bool authenticated_ = false;
  bool readable_ = false;       // the kernel may have input for us
  bool peer_ended_ = false;     // read on until its end, however short a read was
  bool requests_left_ = false;  // complete requests wait for the next turn
  bool awaiting_write_ = false;
  bool continuing_ = false;  // goes on in the next turn
  bool executing_ = false;
  bool closing_ = false;  // close when all output has left
  bool closed_ = false;
  // The end of its batch or IoThread::close_ended() closes it; it does nothing any more.
  bool to_be_closed_ = false;
  bool output_paused_ = false;
  bool counted_blocked_ = false;
  bool pause_over_ = false;  // the postponed request is to be tried again
  bool counted_pubsub_ = false;
};

}  // namespace sluice
