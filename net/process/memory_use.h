// What the process's memory comes to: from jemalloc where it is linked (found as a weak symbol, so
// that sanitizer builds and embedding programs do without), else from the C library; and from the
// kernel.
//
// Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace sluice {

// Bytes that the program has allocated and not freed. Looked up at most every few milliseconds.
uint64_t used_memory_bytes();
// The greatest value that used_memory_bytes has had.
uint64_t peak_memory_bytes();

struct AllocatorFacts {
  uint64_t allocated = 0;
  uint64_t active = 0;
  uint64_t resident = 0;
  const char* name = "libc";
};
AllocatorFacts allocator_facts();

// Gives free pages back to the kernel; false: the allocator refused.
bool purge_memory();
// From now on threads of jemalloc's give free pages back, also while nobody allocates. Without them
// that is done within calls of the allocator, for milliseconds. False: no jemalloc, or no thread.
bool purge_in_background();
// jemalloc's statistics as text; empty with another allocator.
std::string allocator_report();

// What the control group of this process and those above it allow together; nothing: they set no
// limit. The arguments are there for tests.
std::optional<uint64_t> group_memory_limit_bytes(const std::string& groups = "/proc/self/cgroup",
                                                 const std::string& mounted = "/sys/fs/cgroup");

// Of the whole machine / resident pages of this process.
uint64_t system_memory_bytes();
uint64_t resident_bytes();

}  // namespace sluice
