#include "net/replace_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

namespace sluice {

std::string replace_file(const std::string& path, const std::string& text) {
  const std::string temporary = path + ".new-" + std::to_string(getpid());
  {
    std::ofstream stream(temporary, std::ios::trunc | std::ios::binary);
    // Nobody may read the new one who could not read the old one.
    struct stat old {};
    const bool known = ::stat(path.c_str(), &old) == 0;
    if (known && ::chmod(temporary.c_str(), old.st_mode & 07777) != 0) {
      stream.setstate(std::ios::badbit);
    }
    stream << text;
    stream.close();
    if (!stream) {
      const int error = errno;
      std::remove(temporary.c_str());
      return std::strerror(error);
    }
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    std::remove(temporary.c_str());
    return std::strerror(error);
  }
  return "";
}

}  // namespace sluice
