// Replacing small files: the result, and the state after an error.
#include "net/process/replace_file.h"

#include "tests/support/storage_support.h"

#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <string>

#include "tests/support/test.h"

namespace sluice {
namespace {

using test::files_under;
using test::read_file;
using test::TempDirectory;
using test::write_file;

// Root may read everything, so the test drops that capability if it has it.
class NoRightToReadAll {
 public:
  NoRightToReadAll() {
    REQUIRE(syscall(SYS_capget, &header_, before_.data()) == 0);
    Capabilities without = before_;
    without[0].effective &= ~(1U << CAP_DAC_OVERRIDE | 1U << CAP_DAC_READ_SEARCH);
    REQUIRE(syscall(SYS_capset, &header_, without.data()) == 0);
  }
  ~NoRightToReadAll() { syscall(SYS_capset, &header_, before_.data()); }

 private:
  using Capabilities = std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3>;
  __user_cap_header_struct header_{_LINUX_CAPABILITY_VERSION_3, 0};  // of the current thread
  Capabilities before_{};
};

TEST_CASE("a file is replaced") {
  const TempDirectory directory;
  const std::string path = directory.path() + "/conf";
  CHECK(replace_file(path, "old\n").ok());
  CHECK(replace_file(path, "new\n").ok());
  CHECK(read_file(path) == "new\n");
  CHECK(files_under(directory.path()).size() == 1);
}

TEST_CASE("a directory that cannot be synced is an error before anything changes") {
  const TempDirectory directory;
  const NoRightToReadAll plain;
  const std::string path = directory.path() + "/conf";
  REQUIRE(replace_file(path, "old\n").ok());
  REQUIRE(chmod(directory.path().c_str(), 0300) == 0);
  const std::string error = replace_file(path, "new\n").message();
  REQUIRE(chmod(directory.path().c_str(), 0700) == 0);
  CHECK(error == "the directory " + directory.path() +
                     " must be readable so that it can be synced: Permission denied");
  CHECK(read_file(path) == "old\n");
  CHECK(files_under(directory.path()).size() == 1);
}

}  // namespace
}  // namespace sluice
