// The bytes of a job in a record: its event, the state (everything that may change), and the rest
// of a whole job. queue_records.h lists the parts of each record.
//
// State: state u8, band u8, rank, seq, then a mask of the fields that differ from their defaults,
// and those fields. Times are differences to the event's time (to 0 without an event), so that a
// job that is added, started or ended now needs one byte for each of them. Pure functions of their
// arguments. Decoders accept any bytes, allocate at most a small multiple of their size, and return
// false if they are damaged.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/base/limits.h"
#include "engine/base/varint.h"
#include "engine/queue/job.h"
#include "engine/queue/queue_records.h"

namespace sluice {

// Decodes a number. One above the limit counts as damage.
inline bool take_at_most(Bytes& from, uint64_t limit, uint64_t& value) {
  return take_varint(from, value) && value <= limit;
}

// Appends the event head.
void encode_event(const RecordedEvent& event, ByteBuffer& out);
// Decodes it from the front; `event.fields` points into the bytes.
bool decode_event(Bytes& from, RecordedEvent& event);

// The state part of a record, before it is applied to a job.
struct RecordedState {
  JobState state{};
  uint8_t band = 0;
  int64_t rank = 0;
  uint64_t seq = 0;
  // All extras except cost, enqueued_ms and options, which are not part of the state. The run has
  // no worker yet, and its deadlines count from 0.
  JobExtras extras;
  Bytes worker;  // of the run; empty: none
  bool has_extras = false;
  bool lifo = false;       // of its lane
  bool keeps_log = false;  // its log, whose bytes are in records of their own
};
bool decode_state(Bytes& from, int64_t base_ms, RecordedState& state);

// The parts of a whole job besides its state.
struct RecordedRest {
  Bytes group;
  std::vector<Bytes> keys;
  int64_t enqueued_ms = 0;
  uint32_t cost = 1;
  std::unique_ptr<JobOptions> options;
  Bytes payload;
};
// `rank`: that of the state before it.
bool decode_rest(Bytes& from, int64_t rank, RecordedRest& rest);

}  // namespace sluice
