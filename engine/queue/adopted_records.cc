#include "engine/queue/adopted_records.h"

#include <cmath>

#include "engine/base/numbers.h"
#include "engine/base/quoting.h"
#include "engine/base/varint.h"
#include "engine/queue/job_record.h"

namespace sluice {

namespace {

constexpr uint8_t kIsKept = 1;
constexpr uint8_t kIsActive = 2;
constexpr uint8_t kHasPlace = 4;

bool take_u8(Bytes& from, uint8_t& value) {
  if (from.empty()) return false;
  value = static_cast<uint8_t>(from.front());
  from.remove_prefix(1);
  return true;
}

bool take_duration(Bytes& from, int64_t& value) {
  uint64_t number = 0;
  if (!take_varint(from, number) || number > static_cast<uint64_t>(kMaxRecordedTime)) return false;
  value = static_cast<int64_t>(number);
  return true;
}

bool is_definition(EffectType type) {
  return type == EffectType::kQueueAdoption || type == EffectType::kQueueAdopted;
}

bool decode_definition(EffectType type, Bytes from, AdoptedDefinition& definition) {
  Bytes active;
  Bytes prefix;
  Bytes adopter;
  if (!take_duration(from, definition.unit) || !take_duration(from, definition.lease_ms) ||
      !take_bytes(from, active) || !take_bytes(from, prefix) ||
      (type == EffectType::kQueueAdoption && !take_bytes(from, adopter))) {
    return false;
  }
  definition.active = active;
  definition.payload_prefix = prefix;
  definition.adopter = adopter;
  while (!from.empty()) {
    Bytes key;
    if (!take_bytes(from, key)) return false;
    definition.pending.emplace_back(key);
  }
  const size_t keys = definition.pending.size();
  return keys != 0 && keys <= kMaxAdoptedKeys && (definition.unit == 0 || keys == 1);
}

struct RecordedMember {
  RecordedEvent event;
  bool kept = false;
  AdoptedMember member;
};

bool decode_member(Bytes from, RecordedMember& recorded) {
  uint8_t flags = 0;
  if (!decode_event(from, recorded.event) || !take_u8(from, flags)) return false;
  recorded.kept = (flags & kIsKept) != 0;
  if (!recorded.kept) return flags == 0 && from.empty();
  AdoptedMember& member = recorded.member;
  member.active = (flags & kIsActive) != 0;
  member.has_place = (flags & kHasPlace) != 0;
  uint64_t reclaims = 0;
  if (!take_duration(from, member.since_ms) || !take_u8(from, member.band) ||
      !take_varint(from, reclaims) || reclaims > UINT32_MAX || !take_double(from, member.score)) {
    return false;
  }
  member.reclaims = static_cast<uint32_t>(reclaims);
  return !std::isnan(member.score) && from.empty();
}

}  // namespace

void encode_adopted(const AdoptedDefinition* definition, ByteBuffer& out) {
  if (definition == nullptr) return;
  put_varint(out, static_cast<uint64_t>(definition->unit));
  put_varint(out, static_cast<uint64_t>(definition->lease_ms));
  put_bytes(out, definition->active);
  put_bytes(out, definition->payload_prefix);
  put_bytes(out, definition->adopter);
  for (const std::string& key : definition->pending) put_bytes(out, key);
}

void encode_adopted_member(const RecordedEvent& event, const AdoptedMember* member,
                           ByteBuffer& out) {
  encode_event(event, out);
  if (member == nullptr) return out.push('\0');
  out.push(static_cast<char>(kIsKept | (member->active ? kIsActive : 0) |
                             (member->has_place ? kHasPlace : 0)));
  put_varint(out, static_cast<uint64_t>(member->since_ms));
  out.push(static_cast<char>(member->band));
  put_varint(out, member->reclaims);
  put_double(out, member->score);
}

bool apply_adopted_effect(Queue& queue, const Effect& effect) {
  if (is_definition(effect.type)) {
    if (effect.value.empty()) {
      queue.adopted = nullptr;
      return true;
    }
    AdoptedDefinition definition;
    if (!decode_definition(effect.type, effect.value, definition)) return false;
    if (queue.adopted == nullptr) queue.adopted = std::make_unique<AdoptedKeys>();
    queue.adopted->definition = std::move(definition);
    return true;
  }
  RecordedMember recorded;
  if (!decode_member(effect.value, recorded)) return false;
  // After the adoption has ended, only the event of a member applies.
  if (queue.adopted != nullptr) {
    if (recorded.kept) {
      queue.adopted->put(effect.field, recorded.member);
    } else {
      queue.adopted->erase(effect.field);
    }
  }
  append_recorded_event(queue, recorded.event, effect.field);
  return true;
}

bool walk_adopted(const Queue& queue, std::optional<std::string>& last, size_t limit,
                  const EmitRecord& emit) {
  if (queue.adopted == nullptr) return false;
  const AdoptedKeys::Members& members = queue.adopted->members();
  auto at = members.begin();
  ByteBuffer value;
  if (!last.has_value()) {
    encode_adopted(&queue.adopted->definition, value);
    emit(EffectType::kQueueAdoption, {}, value.view());
  } else {
    at = members.upper_bound(*last);
  }
  for (; at != members.end() && limit != 0; ++at, --limit) {
    value.clear();
    encode_adopted_member({}, &at->second, value);
    emit(EffectType::kAdoptedMember, at->first, value.view());
    last = at->first;
  }
  return at != members.end();
}

std::string describe_adopted_effect(const Effect& effect) {
  if (is_definition(effect.type)) {
    if (effect.value.empty()) return " off";
    AdoptedDefinition definition;
    if (!decode_definition(effect.type, effect.value, definition)) return " damaged";
    std::string out;
    for (const std::string& key : definition.pending) out += " pending=" + printable_bytes(key);
    return out + " active=" + printable_bytes(definition.active) +
           " payload=" + printable_bytes(definition.payload_prefix) +
           " adopter=" + printable_bytes(definition.adopter) +
           " unit=" + std::to_string(definition.unit) +
           " lease_ms=" + std::to_string(definition.lease_ms);
  }
  RecordedMember recorded;
  if (!decode_member(effect.value, recorded)) return " damaged";
  std::string out = describe_recorded_event(recorded.event);
  if (!recorded.kept) return out + " nothing kept";
  const AdoptedMember& member = recorded.member;
  out += member.active ? " active" : " given back";
  out += " since=" + std::to_string(member.since_ms) + " band=" + std::to_string(member.band) +
         " reclaims=" + std::to_string(member.reclaims);
  return member.has_place ? out + " score=" + format_double(member.score) : out;
}

}  // namespace sluice
