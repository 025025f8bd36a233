// HttpSocket: the socket of one HTTP connection, with TLS or without.
//
// One read and one write may go on at a time, and one wait beside them. Each calls `done` once, by
// a handler of the thread's context and never from within the call; what is cut off by close() gets
// an error. Whoever owns it lives until then: `done` keeps it alive.
//
// Threads: one I/O thread.
#pragma once

#include <sys/types.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <functional>
#include <memory>

#include "net/io/asio_types.h"
#include "net/io/io_thread.h"
#include "net/tls/tls_stream.h"

namespace sluice {

class HttpSocket {
 public:
  using Done = std::function<void(const error_code& error, size_t count)>;

  // Takes over `fd`, a connected, non-blocking socket; `tls` is null without TLS.
  HttpSocket(IoThread& thread, int fd, bool version_6, std::unique_ptr<TlsStream> tls);

  void read_some(asio::mutable_buffer buffer, Done done);
  void write_all(asio::const_buffer bytes, Done done);
  // Until something is there to read, or the end.
  void wait_readable(Done done);
  // After that: 1 for input, 0 for the end, -1 and errno.
  ssize_t peek();
  // Nothing more is written; reading goes on.
  void shutdown_send();
  void close();

  bool is_tls() const { return tls_ != nullptr; }
  bool in_handshake() const { return is_tls() && !tls_->established(); }
  // Why the handshake has failed; empty if it has not.
  std::string tls_failure() const { return is_tls() ? tls_->failure() : std::string(); }

 private:
  using Stream = asio::basic_stream_socket<asio::ip::tcp, IoExecutor>;

  void read_tls(asio::mutable_buffer buffer, Done done);
  void write_tls(asio::const_buffer left, Done done);
  void wait_tls(bool for_write, std::function<void(const error_code& error)> then);

  IoThread& thread_;
  Stream stream_;
  std::unique_ptr<TlsStream> tls_;
};

}  // namespace sluice
