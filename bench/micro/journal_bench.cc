// Measures the journal: append, the CPU of a commit in each mode, clients that share syncs, a
// checkpoint, and recovery. The figures of ARCHITECTURE.md come from here.
//
//   journal_bench [directory]     (a temporary directory by default; the disk matters for `always`)
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/crc32c.h"
#include "storage/store.h"

namespace sluice {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// For the whole process, including RocksDB's threads and time in the kernel.
double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

size_t resident_bytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  unsigned long size = 0;
  unsigned long resident = 0;
  const int read = std::fscanf(file, "%lu %lu", &size, &resident);
  std::fclose(file);
  return read == 2 ? resident * static_cast<size_t>(sysconf(_SC_PAGESIZE)) : 0;
}

class NullReplay final : public Replay {
 public:
  bool apply(Bytes records, uint64_t count) override {
    sum += count + static_cast<uint8_t>(records.empty() ? 0 : records.back());
    return true;
  }
  void finish(const std::function<void()>&) override {}
  uint64_t sum = 0;
};

// Pieces of a state with `elements` elements of the given size.
class SyntheticWalk final : public CheckpointWalk {
 public:
  SyntheticWalk(uint64_t elements, size_t bytes) : left_(elements), element_(bytes, 'e') {}
  bool step(ByteBuffer& records, uint64_t& count) override {
    for (int i = 0; i < 256 && left_ != 0; ++i, --left_) {
      records.append(element_);
      ++count;
    }
    return left_ != 0;
  }

 private:
  uint64_t left_;
  const std::string element_;
};

std::string root;

std::unique_ptr<Store> open_fresh(SyncMode mode, double linger = JournalOptions().linger_fraction) {
  std::filesystem::remove_all(root + "/data");
  StoreOptions options;
  options.directory = root + "/data";
  options.journal.mode = mode;
  options.journal.linger_fraction = linger;
  options.checkpoint_log_bytes = 0;
  options.checkpoint_rest_ratio = 0;
  NullReplay replay;
  auto store = Store::open(std::move(options), replay);
  if (!store.ok()) {
    std::fprintf(stderr, "%s\n", store.status().message().c_str());
    std::exit(1);
  }
  return std::move(*store);
}

void measure_crc() {
  for (const size_t size : {64, 300, 4096, 262144}) {
    const std::string bytes(size, 'x');
    const size_t rounds = (size_t{1} << 30) / size / 4 + 1;
    uint32_t crc = 0;
    const auto start = Clock::now();
    for (size_t i = 0; i < rounds; ++i) crc = crc32c_extend(crc, bytes.data(), size);
    const double seconds = seconds_since(start);
    std::printf("crc32c %7zu bytes: %8.1f ns, %5.1f GB/s (%08x)\n", size,
                seconds / static_cast<double>(rounds) * 1e9,
                static_cast<double>(rounds * size) / seconds / 1e9, crc);
  }
}

void measure_append(size_t bytes) {
  auto store = open_fresh(SyncMode::kNever);
  const std::string records(bytes, 'r');
  double best = 1e9;
  for (int round = 0; round < 50; ++round) {
    const auto start = Clock::now();
    for (int i = 0; i < 1000; ++i) store->journal().append(records, 1, 0);
    best = std::min(best, seconds_since(start) / 1000 * 1e9);
    store->journal().flush();
  }
  std::printf("append %4zu bytes: %.1f ns\n", bytes, best);
  static_cast<void>(store->close(CloseMode::kDiscard).ok());
}

// A turn of an I/O thread: `units` appends and a flush.
void measure_turns(SyncMode mode, const char* name, size_t bytes, int units) {
  auto store = open_fresh(mode);
  const std::string records(bytes, 'r');
  const uint64_t total = (uint64_t{1} << 30) / (bytes + 32);
  const double cpu = cpu_seconds();
  const auto start = Clock::now();
  double worst = 0;
  for (uint64_t done = 0; done < total; done += static_cast<uint64_t>(units)) {
    for (int i = 0; i < units; ++i) store->journal().append(records, 1, 0);
    const auto flush_start = Clock::now();
    store->journal().flush();
    worst = std::max(worst, seconds_since(flush_start));
  }
  store->journal().sync();
  const double wall = seconds_since(start);
  const double used = cpu_seconds() - cpu;
  std::printf(
      "%s, %4zu-byte units, %3d a turn: %5.0f ns CPU a unit, %.2f ns a byte, %4.0f MB/s, worst "
      "flush "
      "%.1f ms, resident %zu MB, log's memory %zu MB\n",
      name, bytes, units, used / static_cast<double>(total) * 1e9,
      used / static_cast<double>(total * bytes) * 1e9,
      static_cast<double>(total * bytes) / wall / 1e6, worst * 1e3, resident_bytes() >> 20,
      static_cast<size_t>(store->memory_bytes() >> 20));
  static_cast<void>(store->close(CloseMode::kDiscard).ok());
}

// Clients in a closed loop, served by one thread as by an I/O thread: each turn takes the clients
// that are ready, spends `request_us` on each, appends, and flushes; a commit makes its clients
// ready again.
void measure_clients(size_t clients, double linger, double request_us) {
  auto store = open_fresh(SyncMode::kAlways, linger);
  GroupCommitJournal& journal = store->journal();
  const std::string records(200, 'r');
  std::vector<Lsn> waits(clients, 0);
  const double cpu = cpu_seconds();
  const auto start = Clock::now();
  uint64_t done = 0;
  while (seconds_since(start) < 2.0) {
    const Lsn durable = journal.durable_lsn();
    size_t served = 0;
    for (Lsn& wait : waits) {
      if (wait > durable) continue;
      const auto until =
          Clock::now() + std::chrono::nanoseconds(static_cast<int64_t>(request_us * 1e3));
      while (Clock::now() < until) {
      }
      wait = journal.append(records, 1, 0);
      if (++served % 8 == 0) journal.flush();
    }
    done += served;
    if (served != 0) {
      journal.flush();
    } else {
      usleep(5);
    }
  }
  const JournalStats stats = journal.stats();
  std::printf(
      "always, %3zu clients, linger %.2f: %7.0f a second, %6.0f commits a second, mean sync %4.0f "
      "us, "
      "%.1f us CPU a request\n",
      clients, linger, static_cast<double>(done) / seconds_since(start),
      static_cast<double>(stats.commits) / seconds_since(start),
      static_cast<double>(stats.sync_us_total) /
          static_cast<double>(std::max<uint64_t>(stats.syncs, 1)),
      (cpu_seconds() - cpu) / static_cast<double>(done) * 1e6);
  static_cast<void>(store->close(CloseMode::kDiscard).ok());
}

void measure_recovery(bool from_checkpoint) {
  static constexpr uint64_t kRecords = 2'000'000;
  static constexpr size_t kBytes = 200;
  {
    auto store = open_fresh(SyncMode::kNever);
    store->start_checkpoints([] { return std::make_unique<SyntheticWalk>(kRecords, kBytes); },
                             [] { return int64_t{0}; });
    if (from_checkpoint) {
      const double cpu = cpu_seconds();
      const auto start = Clock::now();
      if (!store->checkpointer()->wait_until_done(store->checkpointer()->request()).ok())
        std::exit(1);
      std::printf("checkpoint of %zu MB: %.0f ms, %.0f ms CPU\n", kRecords * kBytes >> 20,
                  seconds_since(start) * 1e3, (cpu_seconds() - cpu) * 1e3);
    } else {
      const std::string records(kBytes, 'r');
      for (uint64_t i = 0; i < kRecords; ++i) {
        store->journal().append(records, 1, 0);
        if (i % 100 == 0) store->journal().flush();
      }
    }
  }
  StoreOptions options;
  options.directory = root + "/data";
  const double cpu = cpu_seconds();
  const auto start = Clock::now();
  NullReplay replay;
  auto store = Store::open(std::move(options), replay);
  const double wall = seconds_since(start);
  if (!store.ok()) std::exit(1);
  std::printf(
      "recovery of %llu records, %zu MB, from %s: %.0f ms (%.0f ms CPU), of it reading %.0f ms\n",
      static_cast<unsigned long long>((*store)->recovered().records()), kRecords * kBytes >> 20,
      from_checkpoint ? "a checkpoint" : "the log", wall * 1e3, (cpu_seconds() - cpu) * 1e3,
      ((*store)->recovered().checkpoint_seconds + (*store)->recovered().log_seconds) * 1e3);
}

int run(int argc, char** argv) {
  std::string made = (std::filesystem::temp_directory_path() / "sluice-bench-XXXXXX").string();
  root = argc > 1 ? argv[1] : mkdtemp(made.data());
  measure_crc();
  for (const size_t bytes : {40, 200, 1000}) measure_append(bytes);
  measure_turns(SyncMode::kEverySecond, "everysec", 200, 1);
  measure_turns(SyncMode::kEverySecond, "everysec", 200, 16);
  measure_turns(SyncMode::kEverySecond, "everysec", 200, 400);
  for (const size_t clients : {1, 10, 50, 200}) {
    for (const double linger : {0.0, 0.25, 0.5, 1.0}) measure_clients(clients, linger, 3);
  }
  measure_recovery(true);
  measure_recovery(false);
  std::filesystem::remove_all(argc > 1 ? root + "/data" : root);
  return 0;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) { return sluice::run(argc, argv); }
