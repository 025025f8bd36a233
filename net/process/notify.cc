#include "net/process/notify.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace sluice {

Status write_ready_file(const std::string& path,
                        const std::vector<std::pair<std::string, uint64_t>>& values) {
  const std::string temporary = path + ".tmp";
  std::FILE* file = std::fopen(temporary.c_str(), "we");
  if (file == nullptr) return io_error("cannot write " + temporary + ": " + std::strerror(errno));
  bool good = true;
  for (const auto& [name, value] : values) {
    good =
        std::fprintf(file, "%s %llu\n", name.c_str(), static_cast<unsigned long long>(value)) > 0 &&
        good;
  }
  good = std::fclose(file) == 0 && good;
  if (!good || std::rename(temporary.c_str(), path.c_str()) != 0) {
    const std::string reason = std::strerror(errno);
    ::unlink(temporary.c_str());
    return io_error("cannot write " + path + ": " + reason);
  }
  return {};
}

bool has_notify_socket() { return std::getenv("NOTIFY_SOCKET") != nullptr; }

void notify_supervisor(const std::string& state) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  if (path == nullptr || (path[0] != '/' && path[0] != '@')) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const size_t length = std::strlen(path);
  if (length >= sizeof(address.sun_path)) return;
  std::memcpy(address.sun_path, path, length);
  // '@' represents the zero byte of an abstract name.
  if (path[0] == '@') address.sun_path[0] = '\0';
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  // Failures are ignored: whether anybody listens is up to the supervisor.
  static_cast<void>(::sendto(fd, state.data(), state.size(), MSG_NOSIGNAL,
                             reinterpret_cast<sockaddr*>(&address),
                             static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length)));
  ::close(fd);
}

}  // namespace sluice
