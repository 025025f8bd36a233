// The file `hash-seed` of a data directory: it is read back, and only a complete number with its
// newline is accepted.
#include "storage/hash_seed.h"

#include "tests/support/storage_support.h"
#include "tests/support/test.h"

using namespace sluice;
using namespace sluice::test;

TEST_CASE("a seed is kept and read back, and overwritten by another") {
  const TempDirectory directory;
  CHECK(read_hash_seed(directory.path()) == std::nullopt);
  for (const uint64_t seed : {uint64_t{0}, uint64_t{12345}, UINT64_MAX}) {
    REQUIRE(keep_hash_seed(directory.path(), seed).ok());
    CHECK(read_hash_seed(directory.path()) == seed);
  }
}

TEST_CASE("a file that is cut off or damaged has no seed") {
  const TempDirectory directory;
  for (const char* text : {"", "\n", "123", "12x\n", "-1\n", "99999999999999999999\n", "1\n2\n"}) {
    CAPTURE(text);
    write_file(directory.path() + "/hash-seed", text);
    CHECK(read_hash_seed(directory.path()) == std::nullopt);
  }
}

TEST_CASE("a seed that cannot be kept is an error that names the file") {
  const TempDirectory directory;
  const Status status = keep_hash_seed(directory.path() + "/missing", 1);
  CHECK_FALSE(status.ok());
  CHECK(status.message().find("missing/hash-seed") != std::string::npos);
}
