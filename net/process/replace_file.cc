#include "net/process/replace_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace sluice {

namespace {

bool write_all(int file, const std::string& text) {
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = ::write(file, text.data() + written, text.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    written += static_cast<size_t>(count);
  }
  return true;
}

// On failure, errno holds the reason. The data must be synced before the rename: otherwise the file
// may be empty after a power failure.
bool write_synced(const std::string& path, const std::string& replaced, const std::string& text) {
  // The new file must not be readable for anyone who could not read the old one, not for a moment.
  struct stat old {};
  const bool known = ::stat(replaced.c_str(), &old) == 0;
  const int file =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, known ? 0600 : 0666);
  if (file < 0) return false;
  const bool good = (!known || ::fchmod(file, old.st_mode & 07777) == 0) && write_all(file, text) &&
                    ::fsync(file) == 0;
  const int error = errno;
  const bool closed = ::close(file) == 0;
  if (!good) errno = error;
  return good && closed;
}

// The directory of the file, without a slash at its end.
std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Status replace_in(int directory, const std::string& path, const std::string& text) {
  const std::string temporary = path + ".new-" + std::to_string(::getpid());
  if (!write_synced(temporary, path, text) || std::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    std::remove(temporary.c_str());
    return io_error(std::strerror(error));
  }
  // Some file systems cannot sync a directory.
  if (::fsync(directory) == 0 || errno == EINVAL) return {};
  return io_error(std::strerror(errno));
}

}  // namespace

Status replace_file(const std::string& path, const std::string& text) {
  const std::string where = directory_of(path);
  // Before anything is written: a directory that is writable but not readable cannot be synced, and
  // the new file's name could then be lost.
  const int directory = ::open(where.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) {
    return io_error("the directory " + where +
                    " must be readable so that it can be synced: " + std::strerror(errno));
  }
  Status status = replace_in(directory, path, text);
  ::close(directory);
  return status;
}

}  // namespace sluice
