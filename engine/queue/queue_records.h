// How a queue is journaled, checkpointed, replayed and copied.
//
// Records (engine/unit/effects.h has the numbers; this is the value; integers are varints, signed
// ones zigzag, text with a varint length):
//   kQueueConfig  level u8, pattern, then pairs field, value: the whole rule; no pairs: removed
//   kQueueHead    queue_ms, next_seq, next_token, next_finish, adaptive_max, last event's number,
//                 totals in the order of Totals (number of them first), number of retained events
//   kJobPut       field = id; an event head, the job's state, group, keys, enqueued_ms, options,
//                 payload
//   kJobState     field = id; an event head, the job's state: everything that may change
//   kJobGone      field = id; an event head
//   kQueueShare   field = name, level u8, virtual_ms (double), arrival_us: of a group, of a key, or
//                 of the queue itself (its virtual time, which earlier versions wrote as 0)
//   kQueueRelease  field = id of a job that has ended; number, RecordedRelease u8: jobs that wait
//                 for this id (by NEED; kEnded: by AFTER) and arrived before the number are being
//                 released, or all of them are
//   kJobLog       field = id; its arrival sequence, the offset of the first byte that is kept, that
//                 of these bytes, the bytes. It belongs to the job that has this sequence
//   kQueueEvents  first number, then events as EventLog holds them (checkpoints only)
// An event head is: type u8; unless it is kNone, number, time, and fields.
// Each record holds whole values, so it may be applied again, and on a later state (effects.h). If
// the job of a record does not exist, only the record's event applies: the job was removed later.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "engine/queue/queue.h"
#include "engine/unit/effects.h"
#include "engine/unit/unit.h"

namespace sluice {

// The event in a record of a job.
struct RecordedEvent {
  EventType type = EventType::kNone;
  uint64_t seq = 0;
  int64_t time_ms = 0;
  Bytes fields;
};

// The least token, and the least number of an event, of a later queue of this name. One event
// number is skipped, so that a reader of all events of this queue notices that the next queue is
// another one.
inline uint64_t floor_over(const Queue& queue) {
  const uint64_t last_seq = queue.events.last_seq();
  return std::max(queue.next_token, last_seq == 0 ? 1 : last_seq + 2);
}

// The queue's head has changed: it is recorded once, at the end of the unit. During replay the
// queue's timers are listed then.
inline void record_head_at_end(Unit& unit, Queue& queue) {
  if (queue.head_dirty) return;
  queue.head_dirty = true;
  unit.dirty_queues.push_back(&queue);
}

// Append the `value` of an Effect. (kJobGone consists of an event head: encode_event() of
// job_record.h.)
void encode_head(const Queue& queue, ByteBuffer& out);
void encode_config(ConfigLevel level, Bytes pattern, std::span<const ConfigField> fields,
                   ByteBuffer& out);
// `whole`: with group, keys, options and payload (kJobPut), else kJobState.
void encode_job(const Job& job, const RecordedEvent& event, bool whole, ByteBuffer& out);
void encode_share(ConfigLevel level, double virtual_ms, int64_t arrival_us, ByteBuffer& out);
// `bytes`: a part of the job's log that begins at the offset `at`.
void encode_log(const Job& job, uint64_t at, Bytes bytes, ByteBuffer& out);
// Whether the release has ended, or how the needed job ended; to followers it makes no difference.
enum class RecordedRelease : uint8_t { kOver = 0, kCompleted = 1, kFailed = 2, kEnded = 3 };
void encode_release(uint64_t number, RecordedRelease what, ByteBuffer& out);
inline RecordedRelease recorded(const Release& release) {
  if (release.followers) return RecordedRelease::kEnded;
  return release.completed ? RecordedRelease::kCompleted : RecordedRelease::kFailed;
}

// Records the head as it is now, and the queue's own share if that has changed.
inline void record_head(Unit& unit, Queue& queue) {
  unit.record_queue(EffectType::kQueueHead, queue.database, queue.key, {},
                    [&](ByteBuffer& value) { encode_head(queue, value); });
  if (!std::exchange(queue.share_dirty, false)) return;
  unit.record_queue(EffectType::kQueueShare, queue.database, queue.key, {}, [&](ByteBuffer& value) {
    encode_share(ConfigLevel::kQueue, queue.lanes.virtual_ms(), queue.limiter.arrival_us, value);
  });
}

// Applies a decoded effect of a queue (is_queue_effect). Steady times begin at 0: the clock starts
// anew with the engine's service, so a lease gets its full term again. Returns false if it is
// damaged.
bool apply_queue_effect(Queue& queue, const Effect& effect);

// The position of a walk over a queue, for checkpoints, RENAME and copies.
struct QueueCursor {
  enum class Part : uint8_t {
    kConfig,
    kAdopted,
    kJobs,
    kGroups,
    kKeys,
    kIdleRates,
    kReleases,
    kEvents,
    kDone
  } part = Part::kConfig;
  // In the part's map; the number of the last release or event, or the level of the last idle rate,
  // that was written.
  uint64_t scan = 0;
  // The last adopted member or idle rate that was written, or the place in QueueConfig::list_rules.
  std::optional<std::string> member = {};
};
// Emits records of the next parts of the queue by `emit(type, field, value)`, about `limit` of them
// at most, and moves the cursor. Returns false at the end.
using EmitRecord = std::function<void(EffectType type, Bytes field, Bytes value)>;
bool walk_queue(const Queue& queue, QueueCursor& cursor, size_t limit, const EmitRecord& emit);

// Adds the event of an applied record to the log.
void append_recorded_event(Queue& queue, const RecordedEvent& event, Bytes id);
// " event=added#1 time=1", or an empty text for no event.
std::string describe_recorded_event(const RecordedEvent& event);
// One line about a record of a queue, for people (sluice-journal).
std::string describe_queue_effect(const Effect& effect);

}  // namespace sluice
