// TlsStream: the server's side of TLS over one connected, non-blocking socket.
//
// It accesses the socket through its own BIO. That avoids SIGPIPE, and a short read shows that the
// socket is empty, which saves a useless read after each request. The handshake needs no call:
// reads and writes drive it. Renegotiation is off.
//
// Threads: used by its connection's thread. Owns the TLS state but not the socket, which is closed
// after it.
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

  // As recv() and send(): the number of bytes, 0 at the peer's end, or -1 and errno: EAGAIN if the
  // socket has to become ready first (see below for what), EPROTO if the connection is unusable. A
  // read returns as much as is available; fewer bytes than requested mean that there are no more,
  // or that the next call will report what stopped it. A write that got EAGAIN must be repeated
  // with the same bytes, to which more may be appended.
  ssize_t read(char* data, size_t size);
  ssize_t write(const char* data, size_t size);
  // Returns 1 if a byte is available, 0 if the peer has ended, or -1 as above. Consumes nothing.
  ssize_t peek();
  // Tells the peer that nothing follows. No writes are allowed afterwards.
  void shut_down();

  bool established() const { return established_; }
  // Why the handshake failed; empty if it did not.
  const std::string& failure() const { return failure_; }

  // Whether the last read found the socket empty, so that new data will cause a new edge.
  bool drained() const { return read_wants_ == Want::kRead; }
  // What a read or write that got EAGAIN waits for, if not the obvious direction.
  bool read_waits_for_write() const { return read_wants_ == Want::kWrite; }
  bool write_waits_for_read() const { return write_wants_ == Want::kRead; }
  // The socket may have new data, or its `end`, which a short read does not show.
  void note_readable(bool end);

  // For the BIO: like recv() and send().
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
  bool empty_ = false;    // the socket, as far as known
  bool closing_ = false;  // the peer's end has been seen
  bool at_end_ = false;
};

}  // namespace sluice
