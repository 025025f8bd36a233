#include "tools/cli/tls_channel.h"

#include <hiredis/hiredis.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "engine/base/check.h"

namespace sluice::cli {

TlsChannel::TlsChannel(const TlsClientContext& context, const std::string& name, int fd)
    : state_(context.open(name)) {
  CHECK(SSL_set_fd(state_.get(), fd) == 1);
}

// Stopping and continuing the program (Ctrl-Z) interrupts a wait that has a time limit.
bool TlsChannel::interrupted(int result) const {
  const int error = errno;
  const int kind = SSL_get_error(state_.get(), result);
  return (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE) && error == EINTR;
}

std::string TlsChannel::reason(int result) const {
  const int error = errno;
  switch (SSL_get_error(state_.get(), result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      return "no answer in time";
    case SSL_ERROR_ZERO_RETURN:
      return "Server closed the connection";
    case SSL_ERROR_SYSCALL:
      ERR_clear_error();
      return error == 0 ? "Server closed the connection" : std::strerror(error);
    default: {
      const char* text = ERR_reason_error_string(ERR_peek_error());
      ERR_clear_error();
      return std::string("TLS: ") + (text == nullptr ? "failed" : text);
    }
  }
}

Status TlsChannel::shake_hands(std::chrono::milliseconds limit) {
  // An interrupted wait would start again with the socket's whole limit.
  const auto deadline = std::chrono::steady_clock::now() + limit;
  int result = 0;
  do {
    ERR_clear_error();
    errno = 0;
    result = SSL_connect(state_.get());
  } while (result != 1 && interrupted(result) && std::chrono::steady_clock::now() < deadline);
  if (result == 1) return {};
  return io_error(reason(result) + certificate_refusal(state_.get()));
}

Status TlsChannel::flush() {
  size_t sent = 0;
  while (sent < requests_.size()) {
    const auto size = static_cast<int>(std::min<size_t>(requests_.size() - sent, INT_MAX));
    ERR_clear_error();
    errno = 0;
    const int result = SSL_write(state_.get(), requests_.data() + sent, size);
    if (result > 0) {
      sent += static_cast<size_t>(result);
    } else if (!interrupted(result)) {
      return io_error(reason(result));
    }
  }
  requests_.clear();
  return {};
}

Result<void*> TlsChannel::read_reply(redisReader* reader) {
  void* reply = nullptr;
  std::array<char, 16384> input{};  // the size of a TLS record
  for (;;) {
    if (::redisReaderGetReply(reader, &reply) != REDIS_OK) return io_error(reader->errstr);
    if (reply != nullptr) return reply;
    Status status = flush();
    if (!status.ok()) return status;
    ERR_clear_error();
    errno = 0;
    const int result = SSL_read(state_.get(), input.data(), static_cast<int>(input.size()));
    if (result <= 0 && !interrupted(result)) return io_error(reason(result));
    if (result <= 0) continue;
    if (::redisReaderFeed(reader, input.data(), static_cast<size_t>(result)) != REDIS_OK) {
      return io_error(reader->errstr);
    }
  }
}

}  // namespace sluice::cli
