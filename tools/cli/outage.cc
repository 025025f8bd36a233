#include "tools/cli/outage.h"

#include <chrono>
#include <thread>

namespace sluice::cli {

namespace {

constexpr std::chrono::milliseconds kBetweenTries(250);

}  // namespace

bool Outage::survives(const Failure& failure) {
  if (failure.code != kNoConnection && !failure.text.starts_with("LOADING")) return false;
  if (!lost_) context_.note(failure.text + "; retrying");
  lost_ = true;
  std::this_thread::sleep_for(kBetweenTries);
  return true;
}

void Outage::ends() {
  if (lost_) context_.note("reconnected");
  lost_ = false;
}

}  // namespace sluice::cli
