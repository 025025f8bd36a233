// Long work on an I/O thread in pieces, a millisecond of them at a time: the sockets have the
// thread in between.
#pragma once

#include <functional>

namespace sluice {

class IoThread;

// Calls `piece` until it says false: as often as fits a turn at once, then in later turns. A piece
// is a small part of a millisecond. What it refers to it must hold; nothing calls it again once the
// thread ends. The I/O thread.
void work_in_turns(IoThread& thread, std::function<bool()> piece);

}  // namespace sluice
