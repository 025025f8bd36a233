#include "net/process/standard_files.h"

#include <fcntl.h>
#include <unistd.h>

namespace sluice {

void occupy_standard_files() {
  for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number) {
    if (::fcntl(number, F_GETFD) >= 0) continue;
    // It gets the lowest free number, which is this one.
    static_cast<void>(::open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY));
  }
}

}  // namespace sluice
