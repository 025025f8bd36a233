// ACL LOG: which refusals are one entry.
#include "engine/access/acl_log.h"

#include "tests/support/test.h"

namespace sluice {
namespace {

TEST_CASE("equal refusals are one entry up to a minute apart") {
  AclLog log;
  for (const int64_t at_ms : {0, 60'000, 120'001}) {
    AclLogEntry entry;
    entry.reason = "key";
    entry.object = "secret";
    entry.username = "eve";
    entry.at_ms = at_ms;
    log.add(entry, 10);
  }
  const std::vector<AclLogEntry> entries = log.newest(10);
  REQUIRE_EQ(entries.size(), 2);
  CHECK_EQ(entries[0].count, 1);
  CHECK_EQ(entries[1].count, 2);
  CHECK_EQ(entries[1].at_ms, 60'000);
}

}  // namespace
}  // namespace sluice
