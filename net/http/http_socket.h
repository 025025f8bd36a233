// HttpSocket: the socket of one HTTP connection, with or without TLS.
//
// At most one read, one write and one wait may be in progress. Each calls `done` once, from a task
// of the thread and never from within the call. close() makes operations fail.
// The owner must live until `done` is called, so `done` should keep it alive.
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

  // Takes ownership of `fd`, a connected, non-blocking socket; `tls` is null without TLS.
  HttpSocket(IoThread& thread, int fd, bool version_6, std::unique_ptr<TlsStream> tls);

  void read_some(asio::mutable_buffer buffer, Done done);
  void write_all(asio::const_buffer bytes, Done done);
  // Waits until there is input, or the end.
  void wait_readable(Done done);
  // After that: returns 1 for input, 0 for the end, or -1 and errno.
  ssize_t peek();
  // Ends writing; reading continues.
  void shutdown_send();
  void close();

  bool is_tls() const { return tls_ != nullptr; }
  bool in_handshake() const { return is_tls() && !tls_->established(); }
  // Why the handshake failed; empty if it did not.
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
