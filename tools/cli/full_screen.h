// FullScreen: the terminal as one page that is drawn again and again.
//
// While it lives the terminal shows its other screen, no cursor, and keys come without Enter and
// without being shown; its destructor gives all of it back as it was. One thread.
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

  // Replaces what is shown; at most `height` lines.
  void draw(const std::vector<std::string>& lines, size_t height);

  // Between these the terminal is as it was before.
  void leave();
  void enter();

 private:
  bool keys_ = false;  // standard input is a terminal, and its mode is in before_
  bool entered_ = false;
  termios before_{};
};

}  // namespace sluice::cli
