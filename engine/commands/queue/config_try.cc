#include "engine/commands/queue/config_try.h"

#include <algorithm>

#include "engine/base/glob_literal.h"
#include "engine/base/limits.h"
#include "engine/commands/queue/adopted.h"
#include "engine/commands/queue/args.h"
#include "engine/reply/map_reply.h"

namespace sluice {

namespace {

// With more rules than this the names that a glob matches are not looked at: a trial of a glob
// copies all rules.
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
  uint64_t dropped = 0;  // ended jobs
  uint64_t events_dropped = 0;
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

void try_retention(const Call& call, const Queue& queue, const QueueValues& values, Tried& tried) {
  const int64_t now_ms = std::max(queue.queue_ms, call.unit.times.queue_ms);
  const Retention* const bounds[] = {&values.retain_completed, &values.retain_failed};
  for (size_t kind = 0; kind < 2; ++kind) {
    const auto dropped = queue.count_dropped(kind, *bounds[kind], now_ms, kMaxExamined);
    tried.dropped += dropped.count;
    tried.complete = tried.complete && dropped.complete;
  }
  tried.events_dropped = queue.events.count_dropped(values.events, now_ms);
}

void try_queue(const Call& call, const Queue& queue, const QueueValues& values, Tried& tried) {
  try_retention(call, queue, values, tried);
  Limits limits = values.limits;
  if (values.adaptive.max != 0) limits.max_active = values.adaptive.max;
  if (queue.adopted != nullptr) {
    const AdoptedView keys = adopted_view(call, queue);
    return tried.add(limits, keys.active_count(), keys.pending_count(), keys.active_count());
  }
  tried.add(limits, queue.limiter.used, queue.waiting(), queue.count(JobState::kActive));
}

void add_group(const Group& group, const Limits& limits, Tried& tried) {
  tried.add(limits, group.limiter.used, group.waiting, group.active);
}

void add_key(const Key& key, const Limits& limits, Tried& tried) {
  tried.add(limits, key.limiter.used, 0, 0);
}

// The rule of one name, however many rules there are.
void try_name(const Queue& queue, ConfigLevel level, Bytes name, const QueueConfig::Parsed& rule,
              Tried& tried) {
  const Limits limits = queue.config.limits_with(level, name, rule);
  const Group* group = level == ConfigLevel::kGroup ? queue.lanes.find_group(name) : nullptr;
  const Key* key = level == ConfigLevel::kKey ? queue.lanes.keys().find(name) : nullptr;
  if (group != nullptr) add_group(*group, limits, tried);
  if (key != nullptr) add_key(*key, limits, tried);
}

// Calls `add` with those of the map that the glob matches.
template <class Map, class Add>
void try_matched(const Map& map, Bytes pattern, size_t rules, Tried& tried, Add add) {
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

void try_glob(const Queue& queue, ConfigLevel level, Bytes pattern,
              std::span<const std::pair<Bytes, Bytes>> fields, Tried& tried) {
  const size_t rules = queue.config.rule_count();
  if (rules > kMostRules) {
    tried.complete = false;
    return;
  }
  QueueConfig config = queue.config;
  config.set(level, pattern, fields);
  if (level == ConfigLevel::kGroup) {
    try_matched(queue.lanes.groups(), pattern, rules, tried, [&](const Group& group) {
      add_group(group, config.group(group.name).limits, tried);
    });
  } else {
    try_matched(queue.lanes.keys(), pattern, rules, tried,
                [&](const Key& key) { add_key(key, config.key(key.name), tried); });
  }
}

}  // namespace

void reply_tried(Call& call, const Queue* queue, ConfigLevel level, Bytes pattern,
                 std::span<const std::pair<Bytes, Bytes>> fields) {
  const QueueConfig::Parsed parsed = config_of(queue).parse(level, pattern, fields);
  if (!parsed.bad.empty()) return reply_bad_field(call, parsed.bad);
  Tried tried;
  if (queue != nullptr && level == ConfigLevel::kQueue) {
    try_queue(call, *queue, parsed.values, tried);
  } else if (queue != nullptr && level != ConfigLevel::kWorker) {
    const std::optional<std::string> name = glob_literal(pattern);
    name ? try_name(*queue, level, *name, parsed, tried)
         : try_glob(*queue, level, pattern, fields, tried);
  }
  MapReply map(call.reply);
  map.count("matched", tried.matched);
  map.count("slots", tried.slots);
  map.count("slots_over", tried.slots_over);
  map.count("waiting_over", tried.waiting_over);
  map.count("total_over", tried.total_over);
  map.count("dropped", tried.dropped);
  map.count("events_dropped", tried.events_dropped);
  map.boolean("complete", tried.complete);
}

}  // namespace sluice
