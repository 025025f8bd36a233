#include "net/process/memory_use.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <fstream>

#include "net/process/clocks.h"
#include "net/process/jemalloc.h"

extern "C" {
// Provided by the sanitizers, whose allocator mallinfo2() does not see.
size_t __sanitizer_get_current_allocated_bytes() __attribute__((weak));
}

namespace sluice {

namespace {

constexpr int64_t kRefreshUs = 5000;

std::atomic<uint64_t> last_used{0};
std::atomic<uint64_t> peak_used{0};
std::atomic<int64_t> next_refresh_us{0};

uint64_t read_counter(const char* name) {
  size_t value = 0;
  size_t length = sizeof(value);
  return mallctl(name, &value, &length, nullptr, 0) == 0 ? value : 0;
}

// As Redis names it in INFO: "jemalloc-5.3.0", without the commit that follows the version.
std::string jemalloc_name() {
  const char* version = "";
  size_t length = sizeof(version);
  mallctl("version", static_cast<void*>(&version), &length, nullptr, 0);
  const std::string text = version;
  return "jemalloc-" + text.substr(0, text.find('-'));
}

void refresh_jemalloc() {
  uint64_t epoch = 1;
  size_t length = sizeof(epoch);
  mallctl("epoch", &epoch, &length, &epoch, length);
}

uint64_t note_used(uint64_t used) {
  last_used.store(used, std::memory_order_relaxed);
  uint64_t peak = peak_used.load(std::memory_order_relaxed);
  while (used > peak && !peak_used.compare_exchange_weak(peak, used)) {
  }
  return used;
}

}  // namespace

AllocatorFacts allocator_facts() {
  AllocatorFacts facts;
  if (mallctl != nullptr) {
    refresh_jemalloc();
    facts.allocated = read_counter("stats.allocated");
    facts.active = read_counter("stats.active");
    facts.resident = read_counter("stats.resident");
    facts.name = jemalloc_name();
  } else if (__sanitizer_get_current_allocated_bytes != nullptr) {
    facts.allocated = __sanitizer_get_current_allocated_bytes();
    facts.active = facts.allocated;
    facts.resident = facts.allocated;
    facts.name = "sanitizer";
  } else {
    const struct mallinfo2 info = ::mallinfo2();
    facts.allocated = info.uordblks + info.hblkhd;
    facts.active = info.arena + info.hblkhd;
    facts.resident = facts.active;
  }
  note_used(facts.allocated);
  return facts;
}

uint64_t used_memory_bytes() {
  const int64_t now_us = Clocks::steady_us();
  int64_t due_us = next_refresh_us.load(std::memory_order_relaxed);
  // One caller refreshes; the others use the current value.
  if (now_us < due_us || !next_refresh_us.compare_exchange_strong(due_us, now_us + kRefreshUs)) {
    return last_used.load(std::memory_order_relaxed);
  }
  return allocator_facts().allocated;
}

bool purge_memory() {
  if (mallctl == nullptr) return ::malloc_trim(0) >= 0;
  // 4096 is jemalloc's number for "all arenas".
  return mallctl("arena.4096.purge", nullptr, nullptr, nullptr, 0) == 0;
}

bool purge_in_background() {
  if (mallctl == nullptr) return false;
  // One thread serves all arenas. If the system provides no more threads, jemalloc 5.3.0 would
  // retry creating the second one in a loop and report each failure on standard error.
  size_t most = 1;
  bool on = true;
  if (mallctl("max_background_threads", nullptr, nullptr, &most, sizeof(most)) != 0) return false;
  return mallctl("background_thread", nullptr, nullptr, &on, sizeof(on)) == 0;
}

std::string allocator_report() {
  std::string report;
  if (malloc_stats_print == nullptr) return report;
  malloc_stats_print([](void* to, const char* text) { *static_cast<std::string*>(to) += text; },
                     &report, nullptr);
  return report;
}

uint64_t peak_memory_bytes() { return peak_used.load(std::memory_order_relaxed); }

namespace {

// Version 1 reports "no limit" as a value above this, rounded to pages.
constexpr uint64_t kMostLimitBytes = uint64_t{1} << 60;

// Lowers `least` to the value in the file; "max" is ignored.
void take_limit(const std::string& path, std::optional<uint64_t>& least) {
  std::ifstream file(path);
  uint64_t bytes = 0;
  if (!(file >> bytes) || bytes >= kMostLimitBytes) return;
  least = std::min(least.value_or(bytes), bytes);
}

}  // namespace

std::optional<uint64_t> group_memory_limit_bytes(const std::string& groups,
                                                 const std::string& mounted) {
  std::optional<uint64_t> least;
  std::ifstream file(groups);
  // "0::/path" in version 2; "5:cpu,memory:/path" in version 1.
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string kinds = ',' + line.substr(first + 1, second - first - 1) + ',';
    const bool unified = kinds == ",,";
    if (!unified && kinds.find(",memory,") == std::string::npos) continue;
    const std::string root = unified ? mounted : mounted + "/memory";
    const char* const name = unified ? "/memory.max" : "/memory.limit_in_bytes";
    // Within a container the path may be the host's and not visible; its root is.
    for (std::string path = line.substr(second + 1);; path.resize(path.rfind('/'))) {
      if (path == "/") path.clear();
      take_limit(root + path + name, least);
      if (path.rfind('/') == std::string::npos) break;
    }
  }
  return least;
}

uint64_t system_memory_bytes() {
  return static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

uint64_t resident_bytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  unsigned long long total = 0;
  unsigned long long resident = 0;
  const int found = std::fscanf(file, "%llu %llu", &total, &resident);
  std::fclose(file);
  return found == 2 ? resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

}  // namespace sluice
