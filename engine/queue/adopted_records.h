// How an adoption (Q.ADOPT) is journaled, checkpointed and replayed. What the adopted keys hold is
// in those keys' own records.
//
// Records (`value` is what is described here; integers are varints, signed ones zigzag, text with a
// varint length):
//   kQueueAdoption  unit, lease_ms, active key, payload prefix, adopter, pending keys; nothing at
//                   all: the queue shows its keys no longer
//   kQueueAdopted   the same without the adopter, as directories of formats 1 and 2 have it
//   kAdoptedMember  field = the member; an event head (queue_records.h), flags u8 (1: something is
//                   kept of it, 2: it is active, 4: it has a place), and if something is kept:
//                   since_ms, band u8, reclaims, score (double)
#pragma once

#include <optional>
#include <string>

#include "engine/queue/adopted_keys.h"
#include "engine/queue/queue_records.h"

namespace sluice {

// Append a record's value. Null: the end of an adoption.
void encode_adopted(const AdoptedDefinition* definition, ByteBuffer& out);
// Null: nothing is kept of the member any more.
void encode_adopted_member(const RecordedEvent& event, const AdoptedMember* member,
                           ByteBuffer& out);

// Applies a decoded effect of these types. False: damaged.
bool apply_adopted_effect(Queue& queue, const Effect& effect);

// Writes the next records of a queue's adoption, at most about `limit` of them; `last` is the
// member written last, at the beginning none. False at the end.
bool walk_adopted(const Queue& queue, std::optional<std::string>& last, size_t limit,
                  const EmitRecord& emit);

// What a line about such a record says behind the key, for people.
std::string describe_adopted_effect(const Effect& effect);

}  // namespace sluice
