// EventLog: what happened to the jobs of a queue, in order: numbers without gaps, bounded by count
// and age (`events`). Q.EVENTS reads it.
//
// An event is a projection of the job's record in the journal: whoever applies the record appends
// the event, live and in replay alike, so nothing is journaled twice. A checkpoint carries the
// events that are kept. Packed in chunks of some 4 KB, about 40 bytes an event. Payloads are never
// in it. With a spill only the newest kTailChunks chunks are in memory, and what is known of the
// others without reading them: numbers, the first one's time, types.
//
// Plain data of one queue, under the shard's lock. A reading of older events waits for the spill.
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
  kNone = 0,  // the record is no event (progress, a changed ticket)
  kAdded = 1,
  kUpdated = 2,
  kReady = 3,  // a delay or a need is over
  kStarted = 4,
  kCompleted = 5,
  kFailed = 6,
  kRetrying = 7,    // a run failed, the job goes back
  kReturned = 8,    // given back as if never popped
  kReclaimed = 9,   // the lease ran out
  kSignalled = 10,  // a cancel was sent to the holder
  kCancelled = 11,
  kExpired = 12,
  kMoved = 13,
  kForgotten = 14,  // purged
};
inline constexpr size_t kEventTypes = 15;
// Sets of types, a bit for each.
inline constexpr uint32_t event_bit(EventType type) { return 1U << static_cast<unsigned>(type); }
inline constexpr uint32_t kEveryEventType = (1U << kEventTypes) - 1 - event_bit(EventType::kNone);
Bytes event_type_name(EventType type);
bool parse_event_type(Bytes name, EventType& type);

// An event as it is read; its views are valid for as long as it is being visited.
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
  // With a spill, so many of the newest chunks stay in memory.
  static constexpr size_t kTailChunks = 16;

  // Where older chunks go from now on; it outlives the log. Null: they stay in memory.
  void spill_to(EventSpill* spill) { spill_ = spill; }
  // Appends the event with the number `seq`. One that is there already is ignored (replay); one
  // that would leave a gap forgets everything before it (the log began later).
  void append(uint64_t seq, int64_t time_ms, EventType type, Bytes id, Bytes fields);
  // Something has happened that is not kept at all (`events` 0). All that is missed in a row takes
  // one number, so that whoever has read up to here hears of it; true: it is the first of the row,
  // and whoever waits must hear. REQUIRES: empty().
  bool miss();
  // Lets go of what `bounds` does not keep, at most `limit` events.
  void trim(const Retention& bounds, int64_t now_ms, size_t limit);
  // Lets go of all up to this number: where a reading has said that it is lost.
  void forget_through(uint64_t seq);
  void clear();
  // What a replay has trimmed in the middle of a chunk has left the time of the oldest unknown.
  void end_replay();

  bool empty() const { return count_ == 0; }
  uint64_t count() const { return count_; }
  // REQUIRES: !empty().
  uint64_t oldest_seq() const { return first_seq_; }
  // The time of the oldest event, or an earlier one: trim() finds out where it matters.
  int64_t oldest_ms() const;
  // The number of the newest event ever, or of what was missed behind it; 0: none yet. It outlives
  // trimming.
  uint64_t last_seq() const { return last_seq_; }
  void set_last_seq(uint64_t seq);
  // Gives all that is kept new numbers, from this one on. REQUIRES: it is above last_seq().
  void renumber_from(uint64_t seq);
  // Replay: so many are kept, up to this number. Where all of these are above all that is there,
  // they are the same events under the numbers that renumber_from() has given them.
  void follow(uint64_t last_seq, uint64_t kept);

  // Where a reading stops: so many events have been looked at, or so many chunks read from the
  // spill and yet another would be next. `visit` may raise them.
  struct Bounds {
    size_t events = SIZE_MAX;
    size_t chunks_read = SIZE_MAX;  // at least 2, to get on behind the one with `after`
  };
  // How far a reading has looked: number and time of the last event, and how many they were.
  struct Looked {
    uint64_t seq = 0;
    int64_t time_ms = 0;
    size_t count = 0;
    bool stopped = false;  // by the bounds
    // Not 0: the reading has ended in front of events, up to this one, that the spill has lost.
    uint64_t lost_seq = 0;
  };
  // Visits kept events of these types (event_bit) with a number greater than `after`, oldest first,
  // until `visit` (of const Event&) returns false or the bounds are reached. Chunks that hold none
  // of the types cost next to nothing.
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
  // All of them.
  template <class Visit>
  Looked read(uint64_t after, Visit visit) const {
    return read(after, kEveryEventType, {}, visit);
  }

  size_t memory_bytes() const;

 private:
  // Events of one chunk, encoded one behind the other: time (varint difference to the chunk's
  // first), type, id, fields.
  struct Chunk {
    uint64_t first_seq = 0;
    int64_t first_ms = 0;
    uint32_t count = 0;
    uint32_t skipped = 0;  // trimmed ones at the beginning
    uint32_t types = 0;    // of its events, also of trimmed ones
    std::string bytes;
    std::unique_ptr<SpilledBytes> spilled;  // not null: `bytes` are there

    uint64_t behind() const { return first_seq + count; }
    uint32_t kept() const { return count - skipped; }
  };
  struct Cursor {
    size_t chunk = 0;
    uint64_t seq = 0;
    size_t offset = 0;
    std::shared_ptr<const std::string> read = {};  // the chunk's bytes, where they are spilled
    uint64_t lost_seq = 0;                         // as in Looked
    size_t chunks_read = 0;                        // from the spill

    // To the beginning of the next chunk.
    void go_on(uint64_t next_seq) {
      *this = {.chunk = chunk + 1, .seq = next_seq, .chunks_read = chunks_read};
    }
  };
  Cursor seek(uint64_t after) const;
  bool next(Cursor& cursor, Event& event) const;
  // From the end of a chunk to the beginning of the next one. Not before the next reading: views
  // point into what the cursor holds.
  void leave_passed(Cursor& cursor) const;
  // Passes over chunks without any of these types, fewer than `most` events in all and never the
  // last chunk: the event behind them says when they were. Returns how many events they hold.
  size_t skip_chunks(Cursor& cursor, uint32_t types, size_t most) const;
  // What is next is in the spill, in a chunk that the cursor does not hold. REQUIRES: it has left
  // what it has passed, as behind skip_chunks().
  bool must_read(const Cursor& cursor) const;
  // The bytes of the cursor's chunk; false: they are lost.
  bool bytes_of(Cursor& cursor, Bytes& bytes) const;
  Chunk& open_chunk(uint64_t seq, int64_t time_ms);
  static void put_event(Chunk& chunk, int64_t time_ms, EventType type, Bytes id, Bytes fields);
  // Lets go of the oldest so many. REQUIRES: at most count().
  void drop(uint64_t count);
  // Makes oldest_ms_ the time of the oldest event; false: that is lost. REQUIRES: !empty().
  bool look_at_oldest();

  EventSpill* spill_ = nullptr;
  std::deque<Chunk> chunks_;
  uint64_t count_ = 0;
  uint64_t first_seq_ = 1;
  uint64_t last_seq_ = 0;
  bool missed_ = false;  // last_seq_ is the number of what has been missed
  // See oldest_ms(): exact for the first event of a chunk, and after look_at_oldest().
  int64_t oldest_ms_ = 0;
  // At the oldest event, once it has been looked for: those behind it are near.
  std::optional<Cursor> oldest_;
  // Where the newest one stands in its chunk: who waits for events asks for it each time.
  size_t newest_offset_ = 0;
};

// Builds Event::fields.
class EventFields {
 public:
  void add(Bytes name, Bytes value);
  void add(Bytes name, int64_t value);
  Bytes bytes() const { return many_.empty() ? Bytes(few_, few_size_) : Bytes(many_); }

 private:
  // Those of most events: each run has several events, and an allocation for each would be felt.
  char few_[96];
  size_t few_size_ = 0;
  std::string many_;  // all of them, once they do not fit
};
// Takes the next pair from the front of `fields`; false at the end.
bool next_event_field(Bytes& fields, Bytes& name, Bytes& value);

}  // namespace sluice
