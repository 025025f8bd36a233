#include "storage/arm_kill_points.h"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>

namespace sluice {
namespace {

std::string& armed_name() {
  static std::string name;
  return name;
}
std::atomic<int64_t> passes_left{1};

void kill_when_due(const char* name) {
  if (armed_name() != name) return;
  if (passes_left.fetch_sub(1, std::memory_order_relaxed) == 1) std::raise(SIGKILL);
}

}  // namespace

void kill_points_from_environment() {
  const char* setting = std::getenv("SLUICE_KILL_POINT");
  if (setting == nullptr || *setting == '\0') return;
  const char* colon = std::strchr(setting, ':');
  if (colon != nullptr) passes_left = std::strtoll(colon + 1, nullptr, 10);
  armed_name() = colon != nullptr ? std::string(setting, colon) : std::string(setting);
  kill_point_hook = kill_when_due;
}

}  // namespace sluice
