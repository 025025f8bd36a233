#include "engine/waiter.h"

#include <algorithm>

namespace sluice {

void WaiterLists::add(const std::string& key, const std::shared_ptr<Waiter>& waiter) {
  by_key_[static_cast<size_t>(waiter->database)][key].push_back(waiter);
  ++count_;
  if (waiter->other_shards) ++needing_others_;
}

void WaiterLists::remove(const std::string& key, const Waiter* waiter) {
  auto& lists = by_key_[static_cast<size_t>(waiter->database)];
  const auto found = lists.find(key);
  if (found == lists.end()) return;
  List& list = found->second;
  const auto at = std::find_if(list.begin(), list.end(),
                               [&](const auto& other) { return other.get() == waiter; });
  if (at == list.end()) return;
  --count_;
  if (waiter->other_shards) --needing_others_;
  list.erase(at);
  if (list.empty()) lists.erase(found);
}

WaiterLists::List* WaiterLists::find(int database, const std::string& key) {
  auto& lists = by_key_[static_cast<size_t>(database)];
  const auto found = lists.find(key);
  return found == lists.end() ? nullptr : &found->second;
}

}  // namespace sluice
