// TlsChannel: requests and replies over TLS on a connected, blocking socket. Debian's hiredis does
// not support TLS, so hiredis only formats requests and parses replies; this class transports the
// bytes.
//
// Used by one thread. Does not own the socket, whose time limits apply. After a failure the
// connection can only be closed.
#pragma once

#include <chrono>
#include <string>

#include "engine/base/status.h"
#include "net/tls/tls_client.h"

struct redisReader;

namespace sluice::cli {

class TlsChannel {
 public:
  // `name` is the name that the certificate must be for.
  TlsChannel(const TlsClientContext& context, const std::string& name, int fd);
  TlsChannel(const TlsChannel&) = delete;
  TlsChannel& operator=(const TlsChannel&) = delete;

  // `limit` is the socket's own, which applies to each wait.
  Status shake_hands(std::chrono::milliseconds limit);

  // Buffers a request until the next read.
  void append(const char* data, size_t size) { requests_.append(data, size); }
  // Writes the buffered requests and reads until there is a reply, which the caller then owns (made
  // by hiredis). An error found by the reader stays in the reader.
  Result<void*> read_reply(redisReader* reader);

 private:
  bool interrupted(int result) const;
  std::string reason(int result) const;
  Status flush();

  TlsState state_;
  std::string requests_;
};

}  // namespace sluice::cli
