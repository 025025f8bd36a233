// The parts of a Redis client that a load generator needs: a blocking connect, a write that always
// completes, and a parser for one RESP2 reply. Errors end the program, because a load run over a
// broken connection is meaningless. No shared state, any thread.
#pragma once

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace sluice::bench {

[[noreturn]] inline void die(int code, const std::string& why) {
  std::fprintf(stderr, "cycle_load: %s\n", why.c_str());
  std::exit(code);
}

inline int connect_to(const std::string& host, uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (fd < 0 || inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1 ||
      connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    die(2, "cannot connect to " + host + ":" + std::to_string(port) + ": " + std::strerror(errno));
  }
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

inline void send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n > 0) {
      bytes.remove_prefix(static_cast<size_t>(n));
    } else if (n < 0 && errno == EAGAIN) {
      pollfd waiting{fd, POLLOUT, 0};
      poll(&waiting, 1, -1);
    } else if (n == 0 || errno != EINTR) {
      die(2, std::string("the server closed a connection: ") + std::strerror(errno));
    }
  }
}

// A line, a bulk, or an array; `size` 0 = incomplete. `text` points into the parsed bytes; for an
// array it is the elements.
struct Reply {
  size_t size = 0;
  char kind = 0;
  bool nil = false;
  std::string_view text;
};

inline Reply parse_reply(std::string_view in) {
  const size_t end = in.find("\r\n");
  if (end == std::string_view::npos) return {};
  Reply reply{end + 2, in[0], in[0] == '_', in.substr(1, end - 1)};
  if (reply.kind != '$' && reply.kind != '*') return reply;
  const long length = std::strtol(in.data() + 1, nullptr, 10);
  reply.nil = length < 0;
  if (reply.nil) return reply;
  if (reply.kind == '$') {
    reply.size = end + 2 + static_cast<size_t>(length) + 2;
    if (in.size() < reply.size) return {};
    reply.text = in.substr(end + 2, static_cast<size_t>(length));
    return reply;
  }
  for (long i = 0; i < length; ++i) {
    const Reply element = parse_reply(in.substr(reply.size));
    if (element.size == 0) return {};
    reply.size += element.size;
  }
  reply.text = in.substr(end + 2, reply.size - end - 2);
  return reply;
}

}  // namespace sluice::bench
