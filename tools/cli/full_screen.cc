#include "tools/cli/full_screen.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace sluice::cli {

namespace {

void write_out(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

FullScreen::FullScreen() {
  keys_ = ::tcgetattr(STDIN_FILENO, &before_) == 0;
  enter();
}

FullScreen::~FullScreen() { leave(); }

void FullScreen::enter() {
  if (entered_) return;
  entered_ = true;
  if (keys_) {
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
  }
  write_out("\x1b[?1049h\x1b[?25l");
}

void FullScreen::leave() {
  if (!entered_) return;
  entered_ = false;
  write_out("\x1b[?25h\x1b[?1049l");
  if (keys_) ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
}

void FullScreen::draw(const std::vector<std::string>& lines, size_t height) {
  // Lines are overwritten without clearing the screen first, so that nothing flickers.
  std::string text = "\x1b[H";
  const size_t shown = std::min(lines.size(), height);
  for (size_t i = 0; i < shown; ++i) {
    text += lines[i] + "\x1b[K";
    if (i + 1 < shown) text += "\n";
  }
  text += "\x1b[J";
  write_out(text);
}

}  // namespace sluice::cli
