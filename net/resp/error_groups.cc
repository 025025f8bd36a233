#include "net/resp/error_groups.h"

#include <algorithm>

namespace sluice {

void ErrorGroups::add(const RespValue& lines) {
  for (size_t i = 0; i + 1 < lines.items.size(); i += 2) {
    const std::string& pattern = lines.items[i].text;
    const RespValue& line = lines.items[i + 1];
    const auto [place, is_new] = places_.try_emplace(pattern, groups_.size());
    if (is_new) {
      groups_.push_back(
          {pattern, 0, 0, line.at("last").integer, line.at("id").text, line.at("error").text});
    }
    ErrorGroup& group = groups_[place->second];
    group.count += line.at("count").integer;
    group.first_ms = line.at("first").integer;
    jobs_ += line.at("count").integer;
  }
}

std::vector<const ErrorGroup*> ErrorGroups::largest(size_t most) const {
  std::vector<const ErrorGroup*> order;
  order.reserve(groups_.size());
  for (const ErrorGroup& group : groups_) order.push_back(&group);
  const size_t shown = std::min(most, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(shown), order.end(),
                    [](const ErrorGroup* a, const ErrorGroup* b) {
                      return a->count != b->count ? a->count > b->count : a < b;
                    });
  order.resize(shown);
  return order;
}

}  // namespace sluice
