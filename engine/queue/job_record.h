// The bytes of a job in a record: the event that comes along, the state (all that may change), and
// the rest of a whole job. queue_records.h says what each record holds.
//
// State: state u8, band u8, rank, seq, then a mask of what differs from the default, and those
// fields. Times are differences to the event's time (to 0 where there is none), so that a job that
// is added, started or ended now costs a byte for each of them. Pure functions of their arguments;
// decoders take damaged bytes, allocate no more than a small multiple of them, and answer false.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/base/limits.h"
#include "engine/base/varint.h"
#include "engine/queue/job.h"
#include "engine/queue/queue_records.h"

namespace sluice {

// A number that is damage above the limit.
inline bool take_at_most(Bytes& from, uint64_t limit, uint64_t& value) {
  return take_varint(from, value) && value <= limit;
}

// Appends the event head.
void encode_event(const RecordedEvent& event, ByteBuffer& out);
// Takes it from the front; `event.fields` points into the bytes.
bool decode_event(Bytes& from, RecordedEvent& event);

// What the state part of a record says, before it is put into a job.
struct RecordedState {
  JobState state{};
  uint8_t band = 0;
  int64_t rank = 0;
  uint64_t seq = 0;
  // Everything but cost, enqueued_ms and options, which are not of the state. A run has no worker
  // yet, and its deadlines count from 0.
  JobExtras extras;
  Bytes worker;  // of the run; empty: none
  bool has_extras = false;
  bool lifo = false;  // of its lane
};
bool decode_state(Bytes& from, int64_t base_ms, RecordedState& state);

// What a whole job has besides its state.
struct RecordedRest {
  Bytes group;
  std::vector<Bytes> keys;
  int64_t enqueued_ms = 0;
  uint32_t cost = 1;
  std::unique_ptr<JobOptions> options;
  Bytes payload;
};
// `rank`: of the state before it.
bool decode_rest(Bytes& from, int64_t rank, RecordedRest& rest);

}  // namespace sluice
