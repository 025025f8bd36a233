// Runs long work on an I/O thread in pieces, for a millisecond at a time; the sockets are served in
// between.
#pragma once

#include <functional>

namespace sluice {

class IoThread;

// Calls `piece` until it returns false: as often as fits into a turn at once, then in later turns.
// A piece must take a small part of a millisecond and keep alive what it refers to; it is not
// called after the thread has ended. Called on the I/O thread.
void work_in_turns(IoThread& thread, std::function<bool()> piece);

}  // namespace sluice
