#include "storage/etcd/etcd_rules.h"

#include <algorithm>

namespace sluice {

void EtcdPace::note_us(int64_t us) {
  times_us_[noted_++ % times_us_.size()] = us;
  // Sorting a few numbers each time would cost more than what it finds changes.
  if (noted_ % 16 != 0) return;
  auto sorted = times_us_;
  const size_t count = std::min(noted_, sorted.size());
  std::sort(sorted.begin(), sorted.begin() + static_cast<ptrdiff_t>(count));
  const int64_t p99_us = sorted[(count * 99 + 99) / 100 - 1];
  deadline_ms_ = std::clamp(4 * p99_us / 1000, kLeastMs, kMostMs);
}

EtcdVersionVerdict judge_etcd_version(const std::string& version) {
  int major = 0;
  int minor = 0;
  int patch = 0;
  if (std::sscanf(version.c_str(), "%d.%d.%d", &major, &minor, &patch) != 3) {
    return {.warning = "its version is unknown: " + version};
  }
  if (major != 3 || minor < 4) {
    return {.refusal = "version " + version + " is not supported: 3.4 or newer is needed"};
  }
  if (minor == 5 && patch <= 2) {
    return {.refusal =
                "version " + version + " may lose data (3.5.0 to 3.5.2): use 3.5.28 or newer"};
  }
  EtcdVersionVerdict verdict;
  if (minor == 4 || (minor == 5 && patch < 28) || (minor == 6 && patch < 9)) {
    verdict.warning =
        "version " + version + " is for tests; in production use 3.5.28, 3.6.9 or newer";
  }
  if (minor <= 5) {
    verdict.hint = "version " + version +
                   " needs --snapshot-count 1000: with more, such as the default of 100,000, it "
                   "may take 20 GB of memory. It tells nobody what it has; docs/operating.md says "
                   "how to look";
  }
  return verdict;
}

}  // namespace sluice
