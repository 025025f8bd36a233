// The process's memory use: from jemalloc if it is linked (found through a weak symbol, so that
// sanitizer builds and embedding programs work without it), else from the C library; and from the
// kernel.
//
// Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace sluice {

// Bytes that the program has allocated and not freed. Refreshed at most every few milliseconds.
uint64_t used_memory_bytes();
// The greatest value of used_memory_bytes so far.
uint64_t peak_memory_bytes();

struct AllocatorFacts {
  uint64_t allocated = 0;
  uint64_t active = 0;
  uint64_t resident = 0;
  std::string name = "libc";
};
AllocatorFacts allocator_facts();

// Returns free pages to the kernel. Returns false if the allocator refused.
bool purge_memory();
// Makes background threads of jemalloc return free pages, even while nobody allocates. Otherwise
// this happens within calls of the allocator and takes milliseconds. Returns false without
// jemalloc, or if no thread could be created.
bool purge_in_background();
// jemalloc's statistics as text; empty with another allocator.
std::string allocator_report();

// The lowest limit of this process's control group and its ancestors; nothing if they set none. The
// arguments exist for tests.
std::optional<uint64_t> group_memory_limit_bytes(const std::string& groups = "/proc/self/cgroup",
                                                 const std::string& mounted = "/sys/fs/cgroup");

// Memory of the whole machine / resident pages of this process.
uint64_t system_memory_bytes();
uint64_t resident_bytes();

}  // namespace sluice
