#include "engine/commands/queue/config_try.h"

#include <algorithm>

#include "engine/base/glob_literal.h"
#include "engine/base/limits.h"
#include "engine/commands/queue/adopted.h"
#include "engine/commands/queue/args.h"
#include "engine/reply/map_reply.h"

namespace sluice {

namespace {

// With more rules than this only the fields are checked: a trial copies all of them.
constexpr size_t kMostRules = 1000;
// A trial finds the rules that apply to so many groups or keys, fewer if there are many rules: each
// of them is compared.
constexpr size_t kMostMatched = 1000;
constexpr size_t kMostCompared = 20'000;

// What is above its limits, of the queue or summed over groups or keys.
struct Tried {
  uint64_t matched = 0;
  uint64_t slots = 0;
  uint64_t slots_over = 0;
  uint64_t waiting_over = 0;
  uint64_t total_over = 0;
  bool complete = true;

  void add(const Limits& limits, uint64_t used, uint64_t waiting, uint64_t active) {
    ++matched;
    slots += used;
    slots_over += over(used, limits.max_active);
    waiting_over += over(waiting, limits.max_waiting);
    total_over += over(waiting + active, limits.max_total);
  }

 private:
  static uint64_t over(uint64_t count, uint64_t limit) {
    return limit == 0 || count <= limit ? 0 : count - limit;
  }
};

void try_queue(const Call& call, const Queue& queue, const QueueConfig& config, Tried& tried) {
  Limits limits = config.values().limits;
  if (config.values().adaptive.max != 0) limits.max_active = config.values().adaptive.max;
  if (queue.adopted != nullptr) {
    const AdoptedView keys = adopted_view(call, queue);
    return tried.add(limits, keys.active_count(), keys.pending_count(), keys.active_count());
  }
  tried.add(limits, queue.limiter.used, queue.waiting(), queue.count(JobState::kActive));
}

// Calls `add` with those of the map that the glob matches, or with the one that it names.
template <class Map, class Find, class Add>
void try_matched(const Map& map, Bytes pattern, size_t rules, Find find, Tried& tried, Add add) {
  if (const auto name = glob_literal(pattern)) {
    const auto* one = find(*name);
    if (one != nullptr) add(*one);
    return;
  }
  const size_t most = std::clamp<size_t>(kMostCompared / (rules + 1), 1, kMostMatched);
  const uint64_t next = map.scan(0, kMaxExamined, [&](const auto* one) {
    if (one->name.empty() || !glob_match(pattern, one->name)) return;
    if (tried.matched < most) {
      add(*one);
    } else {
      tried.complete = false;
    }
  });
  tried.complete = tried.complete && next == 0;
}

void try_groups(const Queue& queue, const QueueConfig& config, Bytes pattern, Tried& tried) {
  const auto find = [&](Bytes name) { return queue.lanes.find_group(name); };
  try_matched(
      queue.lanes.groups(), pattern, config.rule_count(), find, tried, [&](const Group& group) {
        tried.add(config.group(group.name).limits, group.limiter.used, group.waiting, group.active);
      });
}

void try_keys(const Queue& queue, const QueueConfig& config, Bytes pattern, Tried& tried) {
  const auto find = [&](Bytes name) { return queue.lanes.keys().find(name); };
  try_matched(queue.lanes.keys(), pattern, config.rule_count(), find, tried,
              [&](const Key& key) { tried.add(config.key(key.name), key.limiter.used, 0, 0); });
}

}  // namespace

void reply_tried(Call& call, const Queue* queue, ConfigLevel level, Bytes pattern,
                 std::span<const std::pair<Bytes, Bytes>> fields) {
  Tried tried;
  tried.complete = queue == nullptr || queue->config.rule_count() <= kMostRules;
  QueueConfig config;
  if (queue != nullptr && tried.complete) {
    config = queue->config;
  } else if (queue != nullptr) {
    // The names of its bands are needed to check the fields.
    config.apply(ConfigLevel::kQueue, {}, queue->config.recorded(ConfigLevel::kQueue, {}));
  }
  const std::string bad = config.set(level, pattern, fields).bad;
  if (!bad.empty()) return reply_bad_field(call, bad);
  if (queue != nullptr && tried.complete) {
    if (level == ConfigLevel::kQueue) try_queue(call, *queue, config, tried);
    if (level == ConfigLevel::kGroup) try_groups(*queue, config, pattern, tried);
    if (level == ConfigLevel::kKey) try_keys(*queue, config, pattern, tried);
  }
  MapReply map(call.reply);
  map.count("matched", tried.matched);
  map.count("slots", tried.slots);
  map.count("slots_over", tried.slots_over);
  map.count("waiting_over", tried.waiting_over);
  map.count("total_over", tried.total_over);
  map.boolean("complete", tried.complete);
}

}  // namespace sluice
