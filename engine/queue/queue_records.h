// How a queue is journaled, checkpointed, replayed and copied.
//
// Records (engine/unit/effects.h has the numbers; `value` is what is described here; integers
// are varints, signed ones zigzag, text with a varint length):
//   kQueueConfig  level u8, pattern, then pairs field, value: the whole rule; no pairs: removed
//   kQueueHead    queue_ms, next_seq, next_token, next_finish, adaptive_max, last event's number,
//                 totals in the order of Totals (number of them first), how many events are kept
//   kJobPut       field = id; an event head, the job's state, group, keys, enqueued_ms, options,
//                 payload
//   kJobState     field = id; an event head, the job's state: all that may change
//   kJobGone      field = id; an event head
//   kQueueShare   field = name, level u8, virtual_ms (double), arrival_us: of a group, of a key, or
//                 of the queue itself (its virtual time, which earlier versions wrote as 0)
//   kQueueRelease  field = id of a job that has ended; number, RecordedRelease u8: who waits for
//                 this id and has come before the number is being told, or that is over
//   kQueueEvents  first number, then events as EventLog holds them (checkpoints only)
// An event head is: type u8; unless it is kNone, number, time, and fields.
// Each says whole values, so it may be applied again, and on a later state (effects.h). A record of
// a job that is not there is passed over, but for its event: the job went later.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "engine/queue/queue.h"
#include "engine/unit/effects.h"
#include "engine/unit/unit.h"

namespace sluice {

// The event that a record of a job brings along.
struct RecordedEvent {
  EventType type = EventType::kNone;
  uint64_t seq = 0;
  int64_t time_ms = 0;
  Bytes fields;
};

// The least token, and the least number of an event, of a later queue of this name. One number is
// left out behind the last event: so who has read all of this queue hears that the next is another.
inline uint64_t floor_over(const Queue& queue) {
  const uint64_t last_seq = queue.events.last_seq();
  return std::max(queue.next_token, last_seq == 0 ? 1 : last_seq + 2);
}

// The queue's head has changed: it is recorded once, at the end of the unit. Replay lists the
// queue's timers then.
inline void record_head_at_end(Unit& unit, Queue& queue) {
  if (queue.head_dirty) return;
  queue.head_dirty = true;
  unit.dirty_queues.push_back(&queue);
}

// Append what is put behind the key in a record as `value` of Effect. (That of kJobGone is an event
// head alone: encode_event() of job_record.h.)
void encode_head(const Queue& queue, ByteBuffer& out);
void encode_config(ConfigLevel level, Bytes pattern, std::span<const ConfigField> fields,
                   ByteBuffer& out);
// `whole`: with group, keys, options and payload (kJobPut), else kJobState.
void encode_job(const Job& job, const RecordedEvent& event, bool whole, ByteBuffer& out);
void encode_share(ConfigLevel level, double virtual_ms, int64_t arrival_us, ByteBuffer& out);
// Whether it is over, or how what is needed has ended.
enum class RecordedRelease : uint8_t { kOver = 0, kCompleted = 1, kFailed = 2 };
void encode_release(uint64_t number, RecordedRelease what, ByteBuffer& out);
inline RecordedRelease recorded(const Release& release) {
  return release.completed ? RecordedRelease::kCompleted : RecordedRelease::kFailed;
}

// Records the head as it is now.
inline void record_head(Unit& unit, const Queue& queue) {
  unit.record_queue(EffectType::kQueueHead, queue.database, queue.key, {},
                    [&](ByteBuffer& value) { encode_head(queue, value); });
}

// Applies a decoded effect of a queue (is_queue_effect). Steady times begin at 0: the clock
// starts anew when the engine serves, so a lease gets its full term again. False: damaged.
bool apply_queue_effect(Queue& queue, const Effect& effect);

// Where a walk over a queue is; for checkpoints, RENAME and copies.
struct QueueCursor {
  enum class Part : uint8_t {
    kConfig,
    kAdopted,
    kJobs,
    kGroups,
    kKeys,
    kReleases,
    kEvents,
    kDone
  } part = Part::kConfig;
  uint64_t scan = 0;  // in the part's map; of releases and events the last one that was written
  std::optional<std::string> member = {};  // of kAdopted the last one that was written
};
// Writes records of the next parts of the queue through `emit`, at most about `limit` of them, and
// moves the cursor. False at the end. `emit(type, field, value)`.
using EmitRecord = std::function<void(EffectType type, Bytes field, Bytes value)>;
bool walk_queue(const Queue& queue, QueueCursor& cursor, size_t limit, const EmitRecord& emit);

// Puts the event of a record that is applied into the log.
void append_recorded_event(Queue& queue, const RecordedEvent& event, Bytes id);
// " event=added#1 time=1"; empty for none.
std::string describe_recorded_event(const RecordedEvent& event);
// One line for people (sluice-journal) about a record of a queue.
std::string describe_queue_effect(const Effect& effect);

}  // namespace sluice
