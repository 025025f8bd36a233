#include "net/tls/tls_stream.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "engine/base/check.h"

namespace sluice {

namespace {

TlsStream& stream_of(BIO* bio) { return *static_cast<TlsStream*>(BIO_get_data(bio)); }

int bio_read(BIO* bio, char* data, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t count = stream_of(bio).receive(data, static_cast<size_t>(size));
  if (count < 0 && errno == EAGAIN) BIO_set_retry_read(bio);
  return static_cast<int>(count);
}

int bio_write(BIO* bio, const char* data, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t count = stream_of(bio).transmit(data, static_cast<size_t>(size));
  if (count < 0 && errno == EAGAIN) BIO_set_retry_write(bio);
  return static_cast<int>(count);
}

long bio_control(BIO* bio, int command, long /*number*/, void* /*pointer*/) {
  if (command == BIO_CTRL_FLUSH) return 1;  // nothing is buffered here
  return command == BIO_CTRL_EOF && stream_of(bio).at_end() ? 1 : 0;
}

const BIO_METHOD* bio_method() {
  static const BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
    CHECK(made != nullptr);
    BIO_meth_set_read(made, bio_read);
    BIO_meth_set_write(made, bio_write);
    BIO_meth_set_ctrl(made, bio_control);
    return made;
  }();
  return method;
}

std::string reason_of_error() {
  const unsigned long code = ERR_peek_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason != nullptr ? reason : "the connection was lost";
}

}  // namespace

TlsStream::TlsStream(TlsState state, int fd) : state_(std::move(state)), fd_(fd) {
  BIO* bio = BIO_new(bio_method());
  CHECK(bio != nullptr);
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(state_.get(), bio, bio);
}

ssize_t TlsStream::receive(char* data, size_t size) {
  if (empty_) {
    errno = EAGAIN;
    return -1;
  }
  ssize_t count = 0;
  do {
    count = ::recv(fd_, data, size, MSG_DONTWAIT);
  } while (count < 0 && errno == EINTR);
  if (count == 0) at_end_ = true;
  if (count < 0) empty_ = errno == EAGAIN;
  if (count > 0) empty_ = static_cast<size_t>(count) < size && !closing_;
  return count;
}

ssize_t TlsStream::transmit(const char* data, size_t size) {
  ssize_t count = 0;
  do {
    count = ::send(fd_, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (count < 0 && errno == EINTR);
  return count;
}

void TlsStream::note_readable(bool end) {
  empty_ = false;
  closing_ = closing_ || end;
}

void TlsStream::note_progress() {
  if (!established_ && SSL_is_init_finished(state_.get())) established_ = true;
}

// The result of an operation that transferred nothing.
ssize_t TlsStream::stop(int result, Want& wants) {
  note_progress();
  switch (SSL_get_error(state_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      wants = Want::kRead;
      errno = EAGAIN;
      return -1;
    case SSL_ERROR_WANT_WRITE:
      wants = Want::kWrite;
      errno = EAGAIN;
      return -1;
    case SSL_ERROR_ZERO_RETURN:
      return 0;
    default:
      broken_ = true;
      if (!established_ && !at_end_) failure_ = reason_of_error();
      ERR_clear_error();
      errno = EPROTO;
      return -1;
  }
}

ssize_t TlsStream::read(char* data, size_t size) {
  read_wants_ = Want::kNothing;
  size_t total = 0;
  while (total < size && !broken_) {
    size_t count = 0;
    ERR_clear_error();
    const int result = SSL_read_ex(state_.get(), data + total, size - total, &count);
    if (result == 1) {
      total += count;
      continue;
    }
    const ssize_t stopped = stop(result, read_wants_);
    if (total == 0) return stopped;
    break;
  }
  note_progress();
  if (total != 0) return static_cast<ssize_t>(total);
  errno = EPROTO;
  return -1;
}

ssize_t TlsStream::peek() {
  read_wants_ = Want::kNothing;
  if (broken_) {
    errno = EPROTO;
    return -1;
  }
  char byte = 0;
  size_t count = 0;
  ERR_clear_error();
  const int result = SSL_peek_ex(state_.get(), &byte, 1, &count);
  return result == 1 ? 1 : stop(result, read_wants_);
}

ssize_t TlsStream::write(const char* data, size_t size) {
  write_wants_ = Want::kNothing;
  ssize_t stopped = 0;
  if (!broken_) {
    size_t count = 0;
    ERR_clear_error();
    const int result = SSL_write_ex(state_.get(), data, size, &count);
    if (result == 1) {
      note_progress();
      return static_cast<ssize_t>(count);
    }
    stopped = stop(result, write_wants_);
  }
  // Nobody reads any more; for a writer that is an error, not an end.
  if (broken_ || stopped == 0) errno = EPROTO;
  return -1;
}

void TlsStream::shut_down() {
  if (!established_ || broken_) return;
  if ((SSL_get_shutdown(state_.get()) & SSL_SENT_SHUTDOWN) != 0) return;
  ERR_clear_error();
  // One attempt without waiting for a reply: the connection is over in any case.
  SSL_shutdown(state_.get());
  ERR_clear_error();
}

}  // namespace sluice
