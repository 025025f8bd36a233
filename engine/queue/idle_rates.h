// Rates of groups and keys that no job names at the moment. A group is forgotten with its last job,
// but the tokens that its jobs have taken still count: the arrival time of its rate (GCRA) is kept
// here until it has passed. Plain data of one queue.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "engine/base/bytes.h"
#include "engine/queue/queue_config.h"

namespace sluice {

class IdleRates {
 public:
  // `arrival_us`: as in Limiter. Replaces the stored one; 0 or less stores nothing.
  void keep(ConfigLevel level, Bytes name, int64_t arrival_us) {
    take(level, name);
    if (arrival_us <= 0) return;
    Name key{level, std::string(name)};
    name_bytes_ += name.size();
    by_time_.emplace(arrival_us, key);
    by_name_.emplace(std::move(key), arrival_us);
  }
  // Removes and returns it, or 0.
  int64_t take(ConfigLevel level, Bytes name) {
    if (by_name_.empty()) return 0;
    const auto found = by_name_.find(Name{level, std::string(name)});
    if (found == by_name_.end()) return 0;
    const int64_t arrival_us = found->second;
    name_bytes_ -= name.size();
    by_time_.erase({arrival_us, found->first});
    by_name_.erase(found);
    return arrival_us;
  }
  void forget_passed(int64_t now_ms) {
    while (!by_time_.empty() && by_time_.begin()->first <= now_ms * 1000) {
      name_bytes_ -= by_time_.begin()->second.second.size();
      by_name_.erase(by_time_.begin()->second);
      by_time_.erase(by_time_.begin());
    }
  }
  // The first name of this level after `name`, or null.
  const std::string* next(ConfigLevel level, Bytes name) const {
    const auto found = by_name_.upper_bound(Name{level, std::string(name)});
    const bool is_there = found != by_name_.end() && found->first.first == level;
    return is_there ? &found->first.second : nullptr;
  }
  size_t size() const { return by_name_.size(); }
  size_t memory_bytes() const {
    constexpr size_t kTreeNodeBytes = 32;  // what the containers keep with each of their nodes
    return by_name_.size() *
               (2 * kTreeNodeBytes + sizeof(*by_name_.begin()) + sizeof(*by_time_.begin())) +
           2 * name_bytes_;
  }
  // Calls visit(level, name, arrival_us) for those behind this one, in order, until it returns
  // false. Returns whether all were visited.
  template <class Visit>
  bool for_each_after(ConfigLevel level, Bytes name, Visit visit) const {
    auto at = by_name_.upper_bound(Name{level, std::string(name)});
    while (at != by_name_.end() && visit(at->first.first, at->first.second, at->second)) ++at;
    return at == by_name_.end();
  }

 private:
  using Name = std::pair<ConfigLevel, std::string>;
  std::map<Name, int64_t> by_name_;
  std::set<std::pair<int64_t, Name>> by_time_;
  size_t name_bytes_ = 0;
};

}  // namespace sluice
