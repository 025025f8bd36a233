// TlsStream: TLS over one connected, non-blocking socket, on the side of the server.
//
// It reads and writes the socket itself, by a BIO of its own: no signal comes of it, and a short
// read tells that the socket is empty, which saves the read in vain behind each request. The
// handshake needs no call: reads and writes drive it. There is no renegotiation.
//
// Threads: its connection's. Owns the TLS state and not the socket, which is closed after it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

#include "net/tls/tls_context.h"

namespace sluice {

class TlsStream {
 public:
  TlsStream(TlsState state, int fd);
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  // As recv() and send(): bytes, 0 at the peer's end, or -1 and errno: EAGAIN when the socket has
  // to be ready first (see below for what), EPROTO when the connection cannot be used any more.
  // A read takes as much as is there; fewer bytes than asked for mean that there is no more, or
  // that the next call will tell what stopped it. A write that got EAGAIN is done again with the
  // same bytes, perhaps with more behind them.
  ssize_t read(char* data, size_t size);
  ssize_t write(const char* data, size_t size);
  // A byte is there (1), the peer has ended (0), or -1 as above; takes nothing.
  ssize_t peek();
  // Tells the peer that nothing follows. Nothing may be written afterwards.
  void shut_down();

  bool established() const { return established_; }
  // Why the handshake has failed; empty if it has not.
  const std::string& failure() const { return failure_; }

  // Whether the last read has found the socket empty: what comes later is a new edge.
  bool drained() const { return read_wants_ == Want::kRead; }
  // What a read or write that got EAGAIN waits for where it is not the obvious thing.
  bool read_waits_for_write() const { return read_wants_ == Want::kWrite; }
  bool write_waits_for_read() const { return write_wants_ == Want::kRead; }
  // The socket may have something new, and its `end`, which a short read does not show.
  void note_readable(bool end);

  // For the BIO: as recv() and send().
  ssize_t receive(char* data, size_t size);
  ssize_t transmit(const char* data, size_t size);
  bool at_end() const { return at_end_; }

 private:
  enum class Want { kNothing, kRead, kWrite };

  ssize_t stop(int result, Want& wants);
  void note_progress();

  TlsState state_;
  const int fd_;
  std::string failure_;
  Want read_wants_ = Want::kNothing;
  Want write_wants_ = Want::kNothing;
  bool established_ = false;
  bool broken_ = false;
  bool empty_ = false;    // the socket, as far as is known
  bool closing_ = false;  // the peer's end is in sight
  bool at_end_ = false;
};

}  // namespace sluice
