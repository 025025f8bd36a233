#include "tools/import/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace sluice::import {

namespace {

constexpr auto kTerminalInterval = std::chrono::milliseconds(200);
constexpr auto kFileInterval = std::chrono::seconds(5);
// The clock is read once per this many keys.
constexpr uint64_t kKeysBetweenLooks = 64;

}  // namespace

std::string grouped(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3;) text.insert(at -= 3, 1, ',');
  return text;
}

std::string megabytes(uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f MB", static_cast<double>(bytes) / 1e6);
  return text;
}

Progress::Progress(bool quiet) : quiet_(quiet), terminal_(::isatty(STDERR_FILENO) == 1) {}

double Progress::seconds() const {
  return std::chrono::duration<double>(Clock::now() - begin_).count();
}

void Progress::show(uint64_t keys, uint64_t bytes, uint64_t done, uint64_t total) {
  if (quiet_ || ++calls_ % kKeysBetweenLooks != 0) return;
  const auto now = Clock::now();
  if (now - shown_ < (terminal_ ? Clock::duration(kTerminalInterval) : kFileInterval)) return;
  shown_ = now;
  const uint64_t percent = total == 0 ? 0 : std::min<uint64_t>(done * 100 / total, 100);
  const auto rate = static_cast<uint64_t>(static_cast<double>(keys) / std::max(seconds(), 0.001));
  print(grouped(keys) + " keys, " + megabytes(bytes) + ", " + std::to_string(percent) + " %, " +
        grouped(rate) + " keys/s");
}

void Progress::say(const std::string& text) {
  if (!quiet_) print(text);
}

void Progress::print(const std::string& line) {
  if (terminal_) {
    std::fprintf(stderr, "\r\033[K%s", line.c_str());
    std::fflush(stderr);
    open_line_ = true;
  } else {
    std::fprintf(stderr, "%s\n", line.c_str());
  }
}

void Progress::end() {
  if (open_line_) std::fputc('\n', stderr);
  open_line_ = false;
}

}  // namespace sluice::import
