// EventFile: what is kept is read back, from disk or memory; after a failure of the disk it stays
// in memory or is reported as lost.
#include "storage/event_file.h"

#include "tests/support/storage_support.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "tests/support/test.h"

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr size_t kBatch = EventFile::kBatch;
constexpr size_t kSlotBytes = EventFile::kSlotBytes;

struct Site {
  TempDirectory directory;
  std::atomic<uint64_t> min_free{0};
  std::atomic<int> told{0};
  std::shared_ptr<EventFile> file;

  Site() {
    EventFileOptions options;
    options.directory = directory.path();
    options.min_free_bytes = [this] { return min_free.load(); };
    options.retry_delay = std::chrono::milliseconds(1);
    options.sink = [this](LogLevel, std::string_view) { ++told; };
    auto opened = EventFile::open(std::move(options));
    REQUIRE(opened.ok());
    file = *opened;
  }
  ~Site() { file->stop(); }
};

using Kept = std::vector<std::unique_ptr<SpilledBytes>>;

std::string text_of(size_t number, size_t bytes = 3000) {
  std::string text = std::to_string(number) + ":";
  text.resize(bytes, static_cast<char>('a' + number % 26));
  return text;
}

Kept keep(EventFile& file, size_t count, size_t bytes = 3000) {
  Kept kept;
  for (size_t i = 0; i < count; ++i) kept.push_back(file.keep(text_of(i, bytes)));
  return kept;
}

void require_all(const Kept& kept, size_t bytes = 3000) {
  for (size_t i = 0; i < kept.size(); ++i) {
    const auto read = kept[i]->read();
    REQUIRE(read != nullptr);
    REQUIRE(*read == text_of(i, bytes));
  }
}

template <class Condition>
void wait_for(Condition condition) {
  REQUIRE(eventually(condition));
}

size_t in_memory(const Kept& kept) {
  size_t count = 0;
  for (const auto& one : kept) count += one->memory_bytes() >= 3000 ? 1 : 0;
  return count;
}

// The thread waits for a batch, so the last pieces may stay in memory until more are kept. Keeps
// another batch, after which everything kept before has been written, and returns it.
Kept wait_until_written(EventFile& file, const Kept& kept) {
  Kept behind = keep(file, kBatch);
  wait_for([&] { return in_memory(kept) == 0; });
  return behind;
}

// The descriptor of the file, which has no name in the directory.
int nameless_file(const std::string& directory) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (target.starts_with(directory)) return std::stoi(entry.path().filename().string());
  }
  return -1;
}

}  // namespace

TEST_CASE("what is kept is read back, from memory and from the file") {
  Site site;
  for (const size_t bytes : {size_t{3000}, kSlotBytes, 3 * kSlotBytes + 1}) {
    CAPTURE(bytes);
    const Kept kept = keep(*site.file, 3 * kBatch, bytes);
    require_all(kept, bytes);
    wait_for([&] { return in_memory(kept) < kBatch; });
    require_all(kept, bytes);
  }
  CHECK(site.told == 0);
}

TEST_CASE("nothing of it has a name in the directory") {
  Site site;
  const Kept kept = keep(*site.file, kBatch);
  wait_for([&] { return in_memory(kept) == 0; });
  CHECK(files_under(site.directory.path()).empty());
}

TEST_CASE("free slots are used again") {
  Site site;
  for (int round = 0; round < 50; ++round) {
    const Kept kept = keep(*site.file, 2 * kBatch);
    wait_for([&] { return in_memory(kept) < kBatch; });
    require_all(kept);
  }
  CHECK(site.file->disk_bytes() <= 3 * kBatch * kSlotBytes);
}

TEST_CASE("a file that nobody needs is cut") {
  Site site;
  for (int round = 0; round < 3; ++round) {
    Kept kept = keep(*site.file, 2 * EventFile::kKeptSlots);
    wait_for([&] { return in_memory(kept) < kBatch; });
    require_all(kept);
    CHECK(site.file->disk_bytes() > EventFile::kKeptSlots * kSlotBytes);
    kept.clear();
    wait_for([&] { return site.file->disk_bytes() == 0; });
  }
}

TEST_CASE("what is free in a large file goes back to the disk, and is used again") {
  Site site;
  const auto blocks_bytes = [&] {
    struct stat file {};
    REQUIRE(::fstat(nameless_file(site.directory.path()), &file) == 0);
    return static_cast<uint64_t>(file.st_blocks) * 512;
  };
  Kept all = keep(*site.file, 6 * EventFile::kKeptSlots);
  wait_for([&] { return in_memory(all) < kBatch; });
  const uint64_t full_bytes = blocks_bytes();
  Kept kept;
  for (size_t i = 0; i < all.size(); i += 6) kept.push_back(std::move(all[i]));
  all.clear();
  wait_for([&] { return site.file->disk_bytes() <= 3 * EventFile::kKeptSlots * kSlotBytes; });
  wait_for([&] { return blocks_bytes() <= full_bytes * 2 / 3; });
  for (size_t i = 0; i < kept.size(); ++i) {
    const auto read = kept[i]->read();
    REQUIRE(read != nullptr);
    REQUIRE(*read == text_of(6 * i));
  }
  const Kept again = keep(*site.file, 4 * EventFile::kKeptSlots);
  wait_for([&] { return in_memory(again) < kBatch; });
  require_all(again);
  CHECK(site.file->disk_bytes() <= 6 * EventFile::kKeptSlots * kSlotBytes);
}

TEST_CASE("what is dropped before it is written is not written") {
  Site site;
  site.min_free = UINT64_MAX;
  Kept dropped = keep(*site.file, 4 * kBatch);
  dropped.clear();
  site.min_free = 0;
  const Kept kept = keep(*site.file, kBatch);
  const Kept behind = wait_until_written(*site.file, kept);
  wait_for(
      [&] { return site.file->disk_bytes() == (2 * kBatch - in_memory(behind)) * kSlotBytes; });
  require_all(kept);
}

TEST_CASE("what is dropped while it is written takes no place") {
  constexpr size_t kBytes = 64 * kSlotBytes;
  Site site;
  for (int i = 0; i < 100; ++i) {
    Kept kept = keep(*site.file, kBatch, kBytes);
    wait_for([&] { return kept.front()->memory_bytes() < kBytes; });
    kept.clear();
  }
  wait_for([&] { return site.file->disk_bytes() <= EventFile::kKeptSlots * kSlotBytes; });
}

TEST_CASE("while the disk is nearly full, all stays in memory, which is told once") {
  Site site;
  site.min_free = UINT64_MAX;
  const Kept kept = keep(*site.file, 2 * kBatch);
  wait_for([&] { return site.told != 0; });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(site.told == 1);
  CHECK(in_memory(kept) == kept.size());
  CHECK(site.file->disk_bytes() == 0);
  require_all(kept);
  site.min_free = 0;
  wait_until_written(*site.file, kept);
  require_all(kept);
}

TEST_CASE("what cannot be written stays in memory until it can") {
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  Site site;
  const Kept first = keep(*site.file, kBatch);
  wait_for([&] { return in_memory(first) == 0; });
  rlimit small = before;
  small.rlim_cur = (kBatch + 2) * kSlotBytes;
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  const Kept second = keep(*site.file, kBatch);
  wait_for([&] { return site.told == 1; });
  CHECK(in_memory(second) >= kBatch - 2);
  require_all(first);
  require_all(second);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
  const Kept third = keep(*site.file, kBatch);
  wait_until_written(*site.file, third);
  wait_for([&] { return in_memory(second) == 0; });
  require_all(second);
  CHECK(site.told == 1);
}

TEST_CASE("what the disk has lost or changed is told, and read as lost") {
  Site site;
  const Kept kept = keep(*site.file, kBatch);
  wait_for([&] { return in_memory(kept) == 0; });
  const int file = nameless_file(site.directory.path());
  REQUIRE(file >= 0);
  REQUIRE(::pwrite(file, "x", 1, 100) == 1);
  REQUIRE(::ftruncate(file, static_cast<off_t>((kBatch - 1) * kSlotBytes)) == 0);
  size_t lost = 0;
  for (const auto& one : kept) lost += one->read() == nullptr ? 1 : 0;
  CHECK(lost == 2);
  for (const auto& one : kept) static_cast<void>(one->read());  // not reported again
  CHECK(site.told == 2);
}

TEST_CASE("what is kept outlives its owner's hold of the file") {
  Kept kept;
  {
    Site site;
    kept = keep(*site.file, kBatch);
    wait_for([&] { return in_memory(kept) == 0; });
    site.file->stop();
    for (auto& late : keep(*site.file, kBatch)) kept.push_back(std::move(late));
  }
  for (size_t i = 0; i < kept.size(); ++i) {
    const auto read = kept[i]->read();
    REQUIRE(read != nullptr);
    CHECK(*read == text_of(i % kBatch));
  }
}

TEST_CASE("a directory that is not there is named") {
  EventFileOptions options;
  options.directory = "/nowhere/at/all";
  const auto opened = EventFile::open(std::move(options));
  REQUIRE_FALSE(opened.ok());
  CHECK(opened.status().message().find("/nowhere/at/all") != std::string::npos);
}
