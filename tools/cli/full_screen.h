// FullScreen: uses the terminal as one page that is redrawn.
//
// While the object exists, the terminal shows its alternate screen without a cursor, and keys are
// read without Enter and without echo. The destructor restores the terminal, and so does a handler
// of the signals that end the program at once (abort, SIGSEGV). One object at a time; used by one
// thread.
#pragma once

#include <termios.h>

#include <string>
#include <vector>

namespace sluice::cli {

class FullScreen {
 public:
  FullScreen();
  ~FullScreen();
  FullScreen(const FullScreen&) = delete;
  FullScreen& operator=(const FullScreen&) = delete;

  // Replaces the contents by at most `height` lines.
  void draw(const std::vector<std::string>& lines, size_t height);

  // leave() restores the terminal until enter() is called.
  void leave();
  void enter();

 private:
  bool keys_ = false;  // standard input is a terminal, and its mode is in before_
  bool entered_ = false;
  termios before_{};
};

}  // namespace sluice::cli
