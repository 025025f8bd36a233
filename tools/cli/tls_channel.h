// TlsChannel: requests and replies over TLS on a connected, blocking socket, which Debian's hiredis
// knows nothing of: it writes the requests and reads the replies, this carries the bytes.
//
// One thread. Does not own the socket, whose own time limits hold. What fails is told in words, and
// then the connection can only be closed.
#pragma once

#include <chrono>
#include <string>

#include "net/tls/tls_client.h"

struct redisReader;

namespace sluice::cli {

class TlsChannel {
 public:
  // `name`: whom the certificate must be of.
  TlsChannel(const TlsClientContext& context, const std::string& name, int fd);
  TlsChannel(const TlsChannel&) = delete;
  TlsChannel& operator=(const TlsChannel&) = delete;

  // Empty, or why the handshake has failed. `limit`: the socket's own, which holds for one wait.
  std::string shake_hands(std::chrono::milliseconds limit);

  // Keeps a request until something is read.
  void append(const char* data, size_t size) { requests_.append(data, size); }
  // Writes what was kept and reads until there is a reply, which is the caller's, as hiredis makes
  // them. Empty, or why there is none; an error that the reader has found is left with it.
  std::string read_reply(redisReader* reader, void** reply);

 private:
  bool interrupted(int result) const;
  std::string reason(int result) const;
  std::string flush();

  TlsState state_;
  std::string requests_;
};

}  // namespace sluice::cli
