#include "net/http/http_socket.h"

#include <sys/socket.h>

#include <boost/asio/error.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <utility>

namespace sluice {

HttpSocket::HttpSocket(IoThread& thread, int fd, bool version_6, std::unique_ptr<TlsStream> tls)
    : thread_(thread),
      stream_(thread.executor(), version_6 ? asio::ip::tcp::v6() : asio::ip::tcp::v4(), fd),
      tls_(std::move(tls)) {
  error_code ignored;
  stream_.non_blocking(true, ignored);
}

void HttpSocket::read_some(asio::mutable_buffer buffer, Done done) {
  if (is_tls()) return read_tls(buffer, std::move(done));
  stream_.async_read_some(buffer, std::move(done));
}

void HttpSocket::write_all(asio::const_buffer bytes, Done done) {
  if (is_tls()) return write_tls(bytes, std::move(done));
  // The buffer of the socket has room for most responses, which then do not wait for Asio's thread.
  error_code error;
  const size_t count = stream_.write_some(bytes, error);
  if (error == asio::error::would_block || (!error && count != bytes.size())) {
    return asio::async_write(stream_, bytes + count, std::move(done));
  }
  thread_.post([error, count, then = std::move(done)] { then(error, count); });
}

void HttpSocket::wait_readable(Done done) {
  if (is_tls()) {
    return wait_tls(false, [then = std::move(done)](const error_code& error) { then(error, 0); });
  }
  stream_.async_wait(Stream::wait_read,
                     [then = std::move(done)](const error_code& error) { then(error, 0); });
}

ssize_t HttpSocket::peek() {
  if (is_tls()) return tls_->peek();
  char byte = 0;
  return ::recv(stream_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
}

void HttpSocket::shutdown_send() {
  if (is_tls()) tls_->shut_down();
  error_code ignored;
  stream_.shutdown(Stream::shutdown_send, ignored);
}

void HttpSocket::close() {
  if (is_tls()) tls_->shut_down();
  error_code ignored;
  stream_.close(ignored);
}

// --- TLS: the stream determines what to wait for ---

void HttpSocket::wait_tls(bool for_write, std::function<void(const error_code& error)> then) {
  stream_.async_wait(for_write ? Stream::wait_write : Stream::wait_read,
                     [this, next = std::move(then)](const error_code& error) {
                       // the handler was already queued when the socket was closed
                       if (!stream_.is_open()) return next(asio::error::operation_aborted);
                       tls_->note_readable(false);
                       next(error);
                     });
}

void HttpSocket::read_tls(asio::mutable_buffer buffer, Done done) {
  const ssize_t count = tls_->read(static_cast<char*>(buffer.data()), buffer.size());
  if (count < 0 && errno == EAGAIN) {
    return wait_tls(tls_->read_waits_for_write(),
                    [this, buffer, then = std::move(done)](const error_code& error) {
                      if (error) return then(error, 0);
                      read_tls(buffer, then);
                    });
  }
  const error_code error = count > 0    ? error_code()
                           : count == 0 ? error_code(asio::error::eof)
                                        : error_code(asio::error::connection_reset);
  thread_.post([error, size = static_cast<size_t>(count > 0 ? count : 0), then = std::move(done)] {
    then(error, size);
  });
}

void HttpSocket::write_tls(asio::const_buffer left, Done done) {
  while (left.size() != 0) {
    const ssize_t count = tls_->write(static_cast<const char*>(left.data()), left.size());
    if (count >= 0) {
      left += static_cast<size_t>(count);
    } else if (errno == EAGAIN) {
      return wait_tls(!tls_->write_waits_for_read(),
                      [this, left, then = std::move(done)](const error_code& error) {
                        if (error) return then(error, 0);
                        write_tls(left, then);
                      });
    } else {
      return thread_.post([then = std::move(done)] { then(asio::error::connection_reset, 0); });
    }
  }
  thread_.post([then = std::move(done)] { then(error_code(), 0); });
}

}  // namespace sluice
