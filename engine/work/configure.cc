// Q.CONFIG: a changed configuration takes effect.
#include "engine/work/configure.h"

#include "engine/queue/queue_error.h"
#include "engine/work/ends.h"
#include "engine/work/quiet.h"

namespace sluice {

namespace {

// Ended jobs that a smaller retention drops at once.
constexpr size_t kDroppedAtOnce = 256;
// Steps of a change of the configuration (Lanes::reconfigure_some) in one hold: a millisecond.
constexpr size_t kReconfiguredAtOnce = 512;

// A rate that has been lowered delays its jobs by no more than its own burst, whatever the old rate
// let through. The bounds are recorded behind the configuration, as values: replay has another
// time.
void record_bound(QueueWork& work, const std::vector<Lanes::BoundRate>& bound) {
  for (const Lanes::BoundRate& rate : bound) {
    work.record_share(rate.level, rate.name, rate.virtual_ms, rate.arrival_us);
  }
}

}  // namespace

void config_changed(QueueWork& work, ConfigLevel level, Bytes pattern, const ConfigChange& change) {
  Queue& queue = work.queue();
  if (change.scope == ConfigScope::kNothing) return;
  work.write(EffectType::kQueueConfig, {}, [&](ByteBuffer& value) {
    encode_config(level, pattern, queue.config.recorded(level, pattern), value);
  });
  if (level == ConfigLevel::kWorker) {
    // A rule that is new has been heard of.
    if (change.scope == ConfigScope::kName) queue.config.heard(change.name, queue.queue_ms);
    quiet_changed(work, pattern);
    return work.signal();
  }
  std::vector<Lanes::BoundRate> bound;
  queue.reconfigure(change, kReconfiguredAtOnce, &bound);
  if (queue.limiter.bound_arrival(queue.queue_ms)) work.record_own_share();
  record_bound(work, bound);
  queue.events.trim(queue.config.values().events, queue.queue_ms, SIZE_MAX);
  // Timers drop the rest.
  drop_retained(work, kDroppedAtOnce);
  work.signal();
}

void continue_reconfiguring(QueueWork& work) {
  Queue& queue = work.queue();
  if (!queue.lanes.is_reconfiguring()) return;
  std::vector<Lanes::BoundRate> bound;
  queue.lanes.reconfigure_some(kReconfiguredAtOnce, queue.queue_ms, &bound);
  record_bound(work, bound);
}

Status configure_queue(QueueWork& work, ConfigLevel level, Bytes pattern,
                       std::span<const std::pair<Bytes, Bytes>> fields) {
  const ConfigChange change = work.queue().config.set(level, pattern, fields);
  if (!change.bad.empty()) return bad_field(change.bad);
  config_changed(work, level, pattern, change);
  return {};
}

Status reset_queue_config(QueueWork& work, ConfigLevel level, Bytes pattern) {
  const ConfigChange change = work.queue().config.reset(level, pattern);
  if (!change.bad.empty()) return bad_field(change.bad);
  config_changed(work, level, pattern, change);
  return {};
}

}  // namespace sluice
