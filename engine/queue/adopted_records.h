// How an adoption (Q.ADOPT) is journaled, checkpointed and replayed. The contents of the adopted
// keys are in those keys' own records.
//
// Records (the value; integers are varints, signed ones zigzag, text with a varint length):
//   kQueueAdoption  unit, lease_ms, active key, payload prefix, adopter, pending keys; an empty
//                   value ends the adoption
//   kQueueAdopted   the same without the adopter, as in directories of formats 1 and 2
//   kAdoptedMember  field = the member; an event head (queue_records.h), flags u8 (1: it has a
//                   record, 2: it is active, 4: it has a place), and for a record:
//                   since_ms, band u8, reclaims, score (double)
#pragma once

#include <optional>
#include <string>

#include "engine/queue/adopted_keys.h"
#include "engine/queue/queue_records.h"

namespace sluice {

// Append a record's value. Null ends the adoption.
void encode_adopted(const AdoptedDefinition* definition, ByteBuffer& out);
// Null removes the record of the member.
void encode_adopted_member(const RecordedEvent& event, const AdoptedMember* member,
                           ByteBuffer& out);

// Applies a decoded effect of these types. Returns false if it is damaged.
bool apply_adopted_effect(Queue& queue, const Effect& effect);

// Writes the next records of a queue's adoption, about `limit` of them at most. `last` is the
// member that was written last, and empty at the beginning. Returns false at the end.
bool walk_adopted(const Queue& queue, std::optional<std::string>& last, size_t limit,
                  const EmitRecord& emit);

// The text of such a record after its key, for people.
std::string describe_adopted_effect(const Effect& effect);

}  // namespace sluice
