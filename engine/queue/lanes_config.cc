// How a configuration, and a change of it, applies to groups and keys.
#include "engine/queue/lanes.h"

namespace sluice {

namespace {

// The number of groups or keys that take over a configuration between two checks of the step limit.
constexpr size_t kScannedAtOnce = 16;
// The number of globs that are matched in one step.
constexpr size_t kGlobsPerStep = 32;

}  // namespace

void Lanes::apply_config(Group* group) {
  // The empty group stands for jobs without a group and has no limits of its own.
  group->config = group->name.empty() ? GroupConfig{} : config_.group(group->name);
  if (group->name.empty()) {
    group->config.ttl_ms = config_.values().ttl_ms;
    group->config.order = config_.values().order;
    group->config.weight = config_.values().weight;
  }
  const Limits& limits = group->config.limits;
  set_limits(group->limiter, limits.max_active, limits.rate, pauses_out(limits.paused));
}

void Lanes::apply_config(Key* key) {
  const Limits limits = config_.key(key->name);
  set_limits(key->limiter, limits.max_active, limits.rate, false);
}

void Lanes::set_limits(Limiter& limiter, uint64_t max_active, const Rate& rate, bool paused) {
  if (is_limited(limiter)) --limited_;
  limiter.max_active = max_active;
  limiter.set_rate(rate);
  limiter.paused = paused;
  if (is_limited(limiter)) ++limited_;
}

void Lanes::reconfigure(Group* group, int64_t now_ms, std::vector<BoundRate>* bound) {
  take_from_backlog(group);
  apply_config(group);
  if (group->pending != 0) put_in_backlog(group);
  Limiter& limiter = group->limiter;
  if (bound != nullptr && limiter.bound_arrival(now_ms)) {
    bound->push_back({ConfigLevel::kGroup, group->name, group->virtual_ms, limiter.arrival_us});
  }
  refresh_group(group, now_ms);
}

void Lanes::reconfigure(Key* key, int64_t now_ms, std::vector<BoundRate>* bound) {
  apply_config(key);
  if (bound != nullptr && key->limiter.bound_arrival(now_ms)) {
    bound->push_back({ConfigLevel::kKey, key->name, 0, key->limiter.arrival_us});
  }
  refresh_key(key, now_ms);
}

void Lanes::bound_idle_rate(ConfigLevel level, Bytes name, int64_t now_ms,
                            std::vector<BoundRate>& bound) {
  Limiter limiter;
  limiter.rate =
      level == ConfigLevel::kGroup ? config_.group(name).limits.rate : config_.key(name).rate;
  limiter.arrival_us = idle_rates_.take(level, name);
  const bool changed = limiter.bound_arrival(now_ms);
  idle_rates_.keep(level, name, limiter.arrival_us);
  if (changed) bound.push_back({level, std::string(name), 0, limiter.arrival_us});
}

void Lanes::reconfigure(const ConfigChange& change, int64_t now_ms, std::vector<BoundRate>* bound) {
  if (change.scope == ConfigScope::kLevel) turn_of(change.level) = Turn{};
  if (change.scope != ConfigScope::kName) return;
  if (change.level == ConfigLevel::kGroup) {
    if (Group* group = find_group(change.name)) reconfigure(group, now_ms, bound);
  } else {
    if (Key* key = find_key(change.name)) reconfigure(key, now_ms, bound);
  }
  if (bound != nullptr) bound_idle_rate(change.level, change.name, now_ms, *bound);
}

void Lanes::reconfigure_some(size_t steps, int64_t now_ms, std::vector<BoundRate>* bound) {
  size_t done = 0;
  for (const ConfigLevel level : {ConfigLevel::kGroup, ConfigLevel::kKey}) {
    std::optional<Turn>& turn = turn_of(level);
    if (!turn) continue;
    const size_t steps_each = 1 + config_.glob_count(level) / kGlobsPerStep;
    while (!turn->scanned) {
      if (done >= steps) return;
      if (level == ConfigLevel::kGroup) {
        turn->cursor = groups_.scan(turn->cursor, kScannedAtOnce, [&](Group* group) {
          done += steps_each + group->shared + group->own.size();
          reconfigure(group, now_ms, bound);
        });
      } else {
        turn->cursor = keys_.scan(turn->cursor, kScannedAtOnce, [&](Key* key) {
          done += steps_each + key->sets.size();
          reconfigure(key, now_ms, bound);
        });
      }
      turn->scanned = turn->cursor == 0;
    }
    while (bound != nullptr) {
      if (done >= steps) return;
      const std::string* name = idle_rates_.next(level, turn->idle);
      if (name == nullptr) break;
      turn->idle = *name;
      done += steps_each;
      bound_idle_rate(level, turn->idle, now_ms, *bound);
    }
    turn.reset();
  }
}

}  // namespace sluice
