// MemoryAhead: while a recovery fills the memory, another thread takes the page faults for it.
//
// The first touch of a page of a process is a fault, in which the kernel finds and clears it. A
// recovery of gigabytes spends as much time there as with what it puts into them, and in a virtual
// machine whose host has to find the page, too, several times as much. So this takes the place of
// what gives jemalloc fresh memory for the calling thread's arena: pieces of a region in which a
// thread of its own is always one piece ahead.
//
// It begins when the arena has grown by kQuietBytes, so small data are not touched at all, and
// leaves at most one piece resident that nobody uses. Without jemalloc, or on a kernel before 5.14,
// it changes nothing.
//
// Threads: made and destroyed by the thread that allocates; others may share its arena. One at a
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
  bool taken_ = false;  // this one has the arena
};

}  // namespace sluice
