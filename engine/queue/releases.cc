#include "engine/queue/releases.h"

#include "engine/base/check.h"

namespace sluice {

Release& Releases::add(uint64_t number, Bytes need, bool followers, bool completed) {
  const auto [at, is_new] = by_number_.try_emplace(number);
  CHECK(is_new);
  Release& release = at->second;
  release.number = number;
  release.need = need;
  release.followers = followers;
  release.completed = completed;
  by_need_.emplace(std::tuple(release.need, followers, number), &release);
  return release;
}

void Releases::erase(uint64_t number) {
  const auto at = by_number_.find(number);
  CHECK(at != by_number_.end() && at->second.dependents.empty());
  by_need_.erase({at->second.need, at->second.followers, number});
  by_number_.erase(at);
}

}  // namespace sluice
