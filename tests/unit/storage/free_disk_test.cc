// FreeDisk: when a disk counts as nearly full, and how often the server's log says so.
#include "storage/free_disk.h"

#include <string>

#include "tests/support/contents_log.h"
#include "tests/support/test.h"

namespace {

using namespace sluice;
using std::chrono::seconds;

constexpr uint64_t kMin = 100;

// A disk that is probed each second. What was told: '-' below the limit, '+' no longer.
struct Disk {
  void probe(uint64_t free_bytes, int times = 1) {
    log.free_bytes = free_bytes;
    for (int i = 0; i < times; ++i) free.probe(0, now += seconds(1));
  }

  const test::Contents contents;
  test::ContentsLog log{contents};
  std::string changed;
  std::string told;
  FreeDisk free{&log, kMin, [this](bool below) { changed += below ? '-' : '+'; },
                [this](const FreeDisk& disk) { told += disk.below_min() ? '-' : '+'; }};
  FreeDisk::Clock::time_point now = FreeDisk::Clock::now();
};

TEST_CASE("a disk that falls below its reserve is told once, and so is the room that comes back") {
  Disk disk;
  disk.probe(kMin, 100);
  CHECK(disk.told.empty());
  disk.probe(kMin - 1, 100);
  CHECK_EQ(disk.told, "-");
  disk.probe(kMin, 100);
  CHECK_EQ(disk.told, "-+");
  disk.free.set_min_bytes(kMin + 1);
  disk.probe(kMin);
  CHECK_EQ(disk.told, "-+-");
  CHECK_EQ(disk.changed, "-+-");
}

TEST_CASE("a disk that changes to and fro is told once a minute, and how it stays at last") {
  Disk disk;
  for (int second = 0; second < 59; second += 2) {
    disk.probe(kMin - 1);
    disk.probe(kMin);
  }
  CHECK_EQ(disk.changed.size(), 60);
  CHECK_EQ(disk.told, "-+");
  disk.probe(kMin - 1);
  CHECK_EQ(disk.told, "-+-");
  disk.probe(kMin);
  disk.probe(kMin - 1, 58);
  CHECK_EQ(disk.told, "-+-+");
  disk.probe(kMin - 1, 10);
  CHECK_EQ(disk.told, "-+-+-");
}

TEST_CASE("the next look at the disk comes long before the reserve can be written full") {
  Disk disk;
  disk.free.set_min_bytes(uint64_t{320} << 20);
  CHECK(!disk.free.is_due((uint64_t{10} << 20) - 1));
  CHECK(disk.free.is_due(uint64_t{10} << 20));
  disk.free.set_min_bytes(0);
  CHECK(!disk.free.is_due((1 << 20) - 1));
  CHECK(disk.free.is_due(1 << 20));
}

}  // namespace
