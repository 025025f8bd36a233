// Small files that are replaced: what is there afterwards, and what an error leaves.
#include "net/replace_file.h"

#include "tests/support/storage_support.h"

#include <doctest/doctest.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace sluice {
namespace {

using test::files_under;
using test::read_file;
using test::TempDirectory;
using test::write_file;

// Root may read everything: so the test looks at files as nobody does, if it runs as root.
class PlainUser {
 public:
  explicit PlainUser(const std::string& directory) {
    if (geteuid() != 0) return;
    REQUIRE(chown(directory.c_str(), kNobody, kNobody) == 0);
    setfsuid(kNobody);
  }
  ~PlainUser() { setfsuid(geteuid()); }

 private:
  static constexpr uid_t kNobody = 65534;
};

TEST_CASE("a file is replaced") {
  const TempDirectory directory;
  const std::string path = directory.path() + "/conf";
  CHECK(replace_file(path, "old\n").empty());
  CHECK(replace_file(path, "new\n").empty());
  CHECK(read_file(path) == "new\n");
  CHECK(files_under(directory.path()).size() == 1);
}

TEST_CASE("a directory that cannot be synced is an error before anything changes") {
  const TempDirectory directory;
  const PlainUser user(directory.path());
  const std::string path = directory.path() + "/conf";
  REQUIRE(replace_file(path, "old\n").empty());
  REQUIRE(chmod(directory.path().c_str(), 0300) == 0);
  const std::string error = replace_file(path, "new\n");
  REQUIRE(chmod(directory.path().c_str(), 0700) == 0);
  CHECK(error == "the directory " + directory.path() +
                     " cannot be read, as is needed to sync it: Permission denied");
  CHECK(read_file(path) == "old\n");
  CHECK(files_under(directory.path()).size() == 1);
}

}  // namespace
}  // namespace sluice
