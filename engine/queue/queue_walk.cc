// The walk over a queue: the whole queue as records, some at a time.
#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/varint.h"
#include "engine/queue/adopted_records.h"
#include "engine/queue/queue_records.h"

namespace sluice {

namespace {

// A step of a walk ends after this many bytes.
constexpr size_t kWalkBytes = 64 * 1024;
// The number of jobs, groups or keys between two checks of the limits.
constexpr size_t kScanned = 16;

// Counts the output of a step, so that it ends in time.
class WalkStep {
 public:
  WalkStep(size_t limit, const EmitRecord& emit) : left_(limit), emit_(emit) {}

  void record(EffectType type, Bytes field, Bytes value) {
    emit_(type, field, value);
    bytes_ += field.size() + value.size();
  }
  // `encode(ByteBuffer&)` appends the value.
  template <class Encode>
  void encode(EffectType type, Bytes field, Encode encode) {
    value_.clear();
    encode(value_);
    record(type, field, value_.view());
  }
  void visited(size_t count) { left_ -= std::min(left_, count); }
  bool full() const { return left_ == 0 || bytes_ >= kWalkBytes; }
  size_t left() const { return left_; }
  const EmitRecord& emit() const { return emit_; }

 private:
  size_t left_;
  size_t bytes_ = 0;
  const EmitRecord& emit_;
  ByteBuffer value_;
};

bool walk_config(const Queue& queue, std::optional<std::string>& place, WalkStep& step) {
  const auto write = [&](ConfigLevel level, Bytes pattern, std::span<const ConfigField> fields) {
    step.encode(EffectType::kQueueConfig, {},
                [&](ByteBuffer& out) { encode_config(level, pattern, fields, out); });
    step.visited(1);
  };
  if (!place) {
    const std::vector<ConfigField> fields = queue.config.recorded(ConfigLevel::kQueue, {});
    if (!fields.empty()) write(ConfigLevel::kQueue, {}, fields);
    place.emplace("0");
  }
  std::vector<QueueConfig::ListedRule> rules;
  CHECK(queue.config.list_rules(*place, std::max<size_t>(step.left(), 1), rules));
  for (const auto& rule : rules) write(rule.level, rule.glob, rule.fields);
  if (*place != "0") return false;
  // After the configuration, which decides whether there is an effective maximum.
  step.encode(EffectType::kQueueHead, {}, [&](ByteBuffer& out) { encode_head(queue, out); });
  return true;
}

// Scans one of the queue's maps until the step is full. Returns true at the map's end.
template <class Map, class Write>
bool walk_map(const Map& map, uint64_t& cursor, WalkStep& step, Write write) {
  do {
    size_t count = 0;
    cursor = map.scan(cursor, std::min(kScanned, step.left()), [&](auto* node) {
      write(*node);
      ++count;
    });
    step.visited(std::max<size_t>(count, 1));
  } while (cursor != 0 && !step.full());
  return cursor == 0;
}

void encode_kept_event(const Event& event, int64_t before_ms, std::string& out) {
  put_signed(out, event.time_ms - before_ms);
  out += static_cast<char>(event.type);
  put_bytes(out, event.id);
  put_bytes(out, event.fields);
}

bool walk_events(const Queue& queue, uint64_t& after, WalkStep& step) {
  std::string out;
  int64_t before_ms = 0;
  const EventLog::Looked looked = queue.events.read(after, [&](const Event& event) {
    if (out.empty()) put_varint(out, event.seq);
    encode_kept_event(event, before_ms, out);
    before_ms = event.time_ms;
    after = event.seq;
    step.visited(1);
    return !step.full() && out.size() < kWalkBytes;
  });
  if (!out.empty()) step.record(EffectType::kQueueEvents, {}, out);
  // Events that the spill has lost are left out: the restored log begins after them.
  if (out.empty()) after = looked.lost_seq != 0 ? looked.lost_seq : UINT64_MAX - 1;
  return after + 1 >= queue.events.oldest_seq() + queue.events.count();
}

bool walk_releases(const Queue& queue, uint64_t& after, WalkStep& step) {
  const Releases::ByNumber& releases = queue.releases.by_number();
  for (auto at = releases.upper_bound(after); at != releases.end(); ++at) {
    if (step.full()) return false;
    const Release& release = at->second;
    after = release.number;
    step.encode(EffectType::kQueueRelease, release.need,
                [&](ByteBuffer& out) { encode_release(release.number, recorded(release), out); });
    step.visited(1);
  }
  return true;
}

void write_share(WalkStep& step, ConfigLevel level, Bytes name, double virtual_ms,
                 int64_t arrival_us) {
  step.encode(EffectType::kQueueShare, name,
              [&](ByteBuffer& out) { encode_share(level, virtual_ms, arrival_us, out); });
}

bool walk_idle_rates(const Queue& queue, QueueCursor& cursor, WalkStep& step) {
  const auto after = static_cast<ConfigLevel>(cursor.scan);
  return queue.lanes.idle_rates().for_each_after(
      after, cursor.member.value_or(""),
      [&](ConfigLevel level, const std::string& name, int64_t arrival_us) {
        if (step.full()) return false;
        write_share(step, level, name, 0, arrival_us);
        step.visited(1);
        cursor.scan = static_cast<uint64_t>(level);
        cursor.member = name;
        return true;
      });
}

bool walk_part(const Queue& queue, QueueCursor& cursor, WalkStep& step) {
  switch (cursor.part) {
    case QueueCursor::Part::kConfig:
      return walk_config(queue, cursor.member, step);
    case QueueCursor::Part::kAdopted:
      return !walk_adopted(queue, cursor.member, step.left(), step.emit());
    case QueueCursor::Part::kJobs:
      return walk_map(queue.jobs, cursor.scan, step, [&](const Job& job) {
        step.encode(EffectType::kJobPut, job.id(),
                    [&](ByteBuffer& out) { encode_job(job, {}, true, out); });
        const JobLog* log = job.extras_if() == nullptr ? nullptr : job.extras_if()->log.get();
        if (log == nullptr) return;
        step.encode(EffectType::kJobLog, job.id(),
                    [&](ByteBuffer& out) { encode_log(job, log->offset, log->bytes, out); });
      });
    case QueueCursor::Part::kGroups:
      return walk_map(queue.lanes.groups(), cursor.scan, step, [&](const Group& group) {
        if (group.virtual_ms == 0 && group.limiter.arrival_us == 0) return;
        write_share(step, ConfigLevel::kGroup, group.name, group.virtual_ms,
                    group.limiter.arrival_us);
      });
    case QueueCursor::Part::kKeys:
      if (cursor.scan == 0 && (queue.limiter.arrival_us != 0 || queue.lanes.virtual_ms() != 0)) {
        write_share(step, ConfigLevel::kQueue, {}, queue.lanes.virtual_ms(),
                    queue.limiter.arrival_us);
      }
      return walk_map(queue.lanes.keys(), cursor.scan, step, [&](const Key& key) {
        if (key.limiter.arrival_us == 0) return;
        write_share(step, ConfigLevel::kKey, key.name, 0, key.limiter.arrival_us);
      });
    case QueueCursor::Part::kIdleRates:
      return walk_idle_rates(queue, cursor, step);
    case QueueCursor::Part::kReleases:
      return walk_releases(queue, cursor.scan, step);
    case QueueCursor::Part::kEvents:
      return walk_events(queue, cursor.scan, step);
    case QueueCursor::Part::kDone:
      break;
  }
  return true;
}

}  // namespace

bool walk_queue(const Queue& queue, QueueCursor& cursor, size_t limit, const EmitRecord& emit) {
  WalkStep step(limit, emit);
  while (cursor.part != QueueCursor::Part::kDone) {
    if (step.full()) return true;
    if (!walk_part(queue, cursor, step)) return true;
    cursor.part = static_cast<QueueCursor::Part>(static_cast<uint8_t>(cursor.part) + 1);
    cursor.scan = 0;
    cursor.member.reset();
  }
  return false;
}

}  // namespace sluice
