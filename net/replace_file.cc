#include "net/replace_file.h"

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
