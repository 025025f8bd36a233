#include "engine/rare_lines.h"

#include <utility>

namespace sluice {

std::optional<std::string> RareLines::admit(RareLine kind, std::string text, int64_t steady_ms) {
  uint64_t left_out = 0;
  {
    MutexLock lock(mutex_);
    Line& line = lines_[static_cast<size_t>(kind)];
    if (line.logged_ms && steady_ms - *line.logged_ms < kIntervalMs) {
      ++line.left_out;
      return std::nullopt;
    }
    line.logged_ms = steady_ms;
    left_out = std::exchange(line.left_out, 0);
  }
  if (left_out != 0) {
    text += " (" + std::to_string(left_out) + " others since the last such line)";
  }
  return text;
}

}  // namespace sluice
