// MemoryAhead: while a recovery fills the memory, another thread takes the page faults for it.
//
// The first access to a page is a fault in which the kernel allocates and clears the page. A
// recovery of gigabytes spends as much time there as on its own work, and several times as much in
// a virtual machine whose host must also allocate the page. So this replaces the hook that gives
// jemalloc fresh memory for the calling thread's arena: it hands out pieces of a region in which a
// thread of its own always stays one piece ahead.
//
// It begins when the arena has grown by kQuietBytes, so small data sets are not affected, and
// leaves at most one unused piece resident. Without jemalloc, or on a kernel before 5.14, it has no
// effect.
//
// Threads: created and destroyed by the thread that allocates; others may share its arena. At most
// one is active in a process; further ones do nothing.
// time counts in a process; what a second one would do is left out.
#pragma once

namespace sluice {

class MemoryAhead {
 public:
  MemoryAhead();
  ~MemoryAhead();
  MemoryAhead(const MemoryAhead&) = delete;
  MemoryAhead& operator=(const MemoryAhead&) = delete;

 private:
  bool taken_ = false;  // this object installed the hook
};

}  // namespace sluice
