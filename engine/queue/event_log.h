// EventLog: the history of a queue's jobs in order. Numbers have no gaps; count and age are bounded
// (`events`). Q.EVENTS reads it.
//
// An event is a projection of the job's record in the journal: applying the record appends the
// event, live and in replay alike, so nothing is journaled twice. A checkpoint contains the
// retained events. They are packed in chunks of some 4 KB, about 40 bytes an event, without
// payloads. With a spill only the newest kTailChunks chunks are in memory; of the others only their
// numbers, first time and types are.
//
// Plain data of one queue, under the shard's lock. Reading older events waits for the spill.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "engine/base/bytes.h"
#include "engine/ports/event_spill.h"
#include "engine/queue/queue_config.h"

namespace sluice {

enum class EventType : uint8_t {
  kNone = 0,  // the record is not an event (progress, a changed ticket)
  kAdded = 1,
  kUpdated = 2,
  kReady = 3,  // a delay or a need has ended
  kStarted = 4,
  kCompleted = 5,
  kFailed = 6,
  kRetrying = 7,    // a run failed; the job will be retried
  kReturned = 8,    // given back as if never popped
  kReclaimed = 9,   // the lease expired
  kSignalled = 10,  // a cancel was sent to the holder
  kCancelled = 11,
  kExpired = 12,
  kMoved = 13,
  kForgotten = 14,  // purged
  kProgress = 15,   // only while a client waits for the job's events
};
inline constexpr size_t kEventTypes = 16;
// Sets of types, a bit for each.
inline constexpr uint32_t event_bit(EventType type) { return 1U << static_cast<unsigned>(type); }
inline constexpr uint32_t kEveryEventType = (1U << kEventTypes) - 1 - event_bit(EventType::kNone);
Bytes event_type_name(EventType type);
std::optional<EventType> parse_event_type(Bytes name);

// A decoded event. Its views are valid only during the visit.
struct Event {
  uint64_t seq = 0;
  int64_t time_ms = 0;  // queue time
  EventType type = EventType::kNone;
  Bytes id;
  // Pairs of name and value, each a varint length and bytes: worker, lease, attempt, error, ...
  Bytes fields;
};

class EventLog {
 public:
  // With a spill, this many of the newest chunks remain in memory.
  static constexpr size_t kTailChunks = 16;

  // Sets the spill for older chunks, which must outlive the log. Null: they remain in memory.
  void spill_to(EventSpill* spill) { spill_ = spill; }
  // Appends the event with the number `seq`. A number that exists already is ignored (replay). If
  // there would be a gap, everything before it is dropped, because the log began later.
  void append(uint64_t seq, int64_t time_ms, EventType type, Bytes id, Bytes fields);
  // Counts an event that is not retained (`events` 0). Consecutive missed events share one number,
  // which tells readers that they missed something. Returns true for the first of them: waiting
  // readers must be notified. REQUIRES: empty().
  bool miss();
  // Drops events that `bounds` does not retain, at most `limit` of them.
  void trim(const Retention& bounds, int64_t now_ms, size_t limit);
  // The number of events that `bounds` does not retain.
  uint64_t count_dropped(const Retention& bounds, int64_t now_ms) const;
  // Drops all events up to this number, which a reading has reported as lost.
  void forget_through(uint64_t seq);
  void clear();
  // Replay may trim within a chunk, after which the time of the oldest event is unknown. This finds
  // it.
  void end_replay();

  bool empty() const { return count_ == 0; }
  uint64_t count() const { return count_; }
  // REQUIRES: !empty().
  uint64_t oldest_seq() const { return first_seq_; }
  // The time of the oldest event, or an earlier one: trim() finds the exact time where it matters.
  int64_t oldest_ms() const;
  // The number of the newest event ever, or the one given to missed events after it; 0: none yet.
  // Trimming does not reset it.
  uint64_t last_seq() const { return last_seq_; }
  void set_last_seq(uint64_t seq);
  // Renumbers the retained events from `seq` on. REQUIRES: seq > last_seq().
  void renumber_from(uint64_t seq);
  // Replay: `kept` events up to `last_seq` are retained. If all of these numbers are above the
  // present ones, they are the same events as renumbered by renumber_from().
  void follow(uint64_t last_seq, uint64_t kept);

  // Bounds of a reading: the number of events examined, and the number of chunks read from the
  // spill, which is checked before another one is read. `visit` may raise them.
  struct Bounds {
    size_t events = SIZE_MAX;
    size_t chunks_read = SIZE_MAX;  // at least 2, to get past the one with `after`
  };
  // How far a reading came: number and time of the last event, and the count of examined events.
  struct Looked {
    uint64_t seq = 0;
    int64_t time_ms = 0;
    size_t count = 0;
    bool stopped = false;  // by the bounds
    // If not 0, the reading has ended before events, up to this one, that the spill has lost.
    uint64_t lost_seq = 0;
  };
  // Visits retained events of these types (event_bit) with a number greater than `after`, oldest
  // first, until `visit` (of const Event&) returns false or the bounds are reached. Chunks without
  // any of the types cost next to nothing.
  template <class Visit>
  Looked read(uint64_t after, uint32_t types, const Bounds& bounds, Visit visit) const {
    Cursor cursor = seek(after);
    Event event;
    Looked looked;
    while (looked.count < bounds.events) {
      looked.count += skip_chunks(cursor, types, bounds.events - looked.count);
      if (cursor.chunks_read >= bounds.chunks_read && must_read(cursor)) {
        looked.stopped = true;
        return looked;
      }
      if (!next(cursor, event)) {
        looked.lost_seq = cursor.lost_seq;
        return looked;
      }
      ++looked.count;
      looked.seq = event.seq;
      looked.time_ms = event.time_ms;
      if ((types & event_bit(event.type)) != 0 && !visit(event)) return looked;
    }
    looked.stopped = true;
    return looked;
  }
  // Visits events of all types.
  template <class Visit>
  Looked read(uint64_t after, Visit visit) const {
    return read(after, kEveryEventType, {}, visit);
  }

  size_t memory_bytes() const;

 private:
  // Events of one chunk, encoded one after the other: time (varint difference to the chunk's
  // first), type, id, fields.
  struct Chunk {
    uint64_t first_seq = 0;
    int64_t first_ms = 0;
    uint32_t count = 0;
    uint32_t skipped = 0;  // trimmed events at the beginning
    uint32_t types = 0;    // of its events, including trimmed ones
    std::string bytes;
    std::unique_ptr<SpilledBytes> spilled;  // if not null, it holds the bytes

    uint64_t behind() const { return first_seq + count; }
    uint32_t kept() const { return count - skipped; }
  };
  struct Cursor {
    size_t chunk = 0;
    uint64_t seq = 0;
    size_t offset = 0;
    std::shared_ptr<const std::string> read = {};  // the chunk's bytes, if they are spilled
    uint64_t lost_seq = 0;                         // as in Looked
    size_t chunks_read = 0;                        // from the spill

    // Moves to the beginning of the next chunk.
    void go_on(uint64_t next_seq) {
      *this = {.chunk = chunk + 1, .seq = next_seq, .chunks_read = chunks_read};
    }
  };
  Cursor seek(uint64_t after) const;
  bool next(Cursor& cursor, Event& event) const;
  // Moves from the end of a chunk to the beginning of the next one. Only at the next reading,
  // because views point into what the cursor holds.
  void leave_passed(Cursor& cursor) const;
  // Skips chunks that have none of these types, fewer than `most` events in all and never the last
  // chunk: the following event shows the time of the skipped ones. Returns the number of events
  // skipped.
  size_t skip_chunks(Cursor& cursor, uint32_t types, size_t most) const;
  // Whether the next event is in a spilled chunk that the cursor does not hold. REQUIRES: the
  // cursor has left finished chunks (leave_passed, skip_chunks).
  bool must_read(const Cursor& cursor) const;
  // The bytes of the cursor's chunk. Returns false if they are lost.
  bool bytes_of(Cursor& cursor, Bytes& bytes) const;
  Chunk& open_chunk(uint64_t seq, int64_t time_ms);
  static void put_event(Chunk& chunk, int64_t time_ms, EventType type, Bytes id, Bytes fields);
  // Drops the oldest `count` events. REQUIRES: at most count().
  void drop(uint64_t count);
  // Sets oldest_ms_ to the time of the oldest event. Returns false if that is lost. REQUIRES:
  // !empty().
  bool look_at_oldest();

  EventSpill* spill_ = nullptr;
  std::deque<Chunk> chunks_;
  uint64_t count_ = 0;
  uint64_t first_seq_ = 1;
  uint64_t last_seq_ = 0;
  bool missed_ = false;  // last_seq_ is the number of missed events
  // See oldest_ms(): exact for the first event of a chunk, and after look_at_oldest().
  int64_t oldest_ms_ = 0;
  // The position of the oldest event, once it has been read: the next ones are near.
  std::optional<Cursor> oldest_;
  // The offset of the newest event in its chunk, which every waiting reader reads.
  size_t newest_offset_ = 0;
};

// Builds Event::fields.
class EventFields {
 public:
  void add(Bytes name, Bytes value);
  void add(Bytes name, int64_t value);
  Bytes bytes() const { return many_.empty() ? Bytes(few_, few_size_) : Bytes(many_); }

 private:
  // The fields of most events fit here: each run has several events, and an allocation for each
  // would be noticeable.
  char few_[96];
  size_t few_size_ = 0;
  std::string many_;  // all of them, once they do not fit in few_
};
// Takes the next pair from the front of `fields`. Returns false at the end.
bool next_event_field(Bytes& fields, Bytes& name, Bytes& value);

}  // namespace sluice
