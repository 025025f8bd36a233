#include "tools/cli/full_screen.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>

#include "engine/base/bytes.h"

namespace sluice::cli {

namespace {

void write_out(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

constexpr Bytes kEnter = "\x1b[?1049h\x1b[?25l";
constexpr Bytes kLeave = "\x1b[?25h\x1b[?1049l";

// For the handler of fatal signals: the terminal's mode, or null if there is nothing to restore.
const termios* mode_to_restore = nullptr;

void restore_and_die(int number) {
  static_cast<void>(!::write(STDOUT_FILENO, kLeave.data(), kLeave.size()));
  if (mode_to_restore != nullptr) ::tcsetattr(STDIN_FILENO, TCSANOW, mode_to_restore);
  static_cast<void>(std::raise(number));  // by SA_RESETHAND as without a handler
}

void handle_fatal_signals(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
  for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    ::sigaction(number, &action, nullptr);
  }
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
  mode_to_restore = keys_ ? &before_ : nullptr;
  handle_fatal_signals(restore_and_die);
  write_out(std::string(kEnter));
}

void FullScreen::leave() {
  if (!entered_) return;
  entered_ = false;
  write_out(std::string(kLeave));
  if (keys_) ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
  handle_fatal_signals(SIG_DFL);
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
