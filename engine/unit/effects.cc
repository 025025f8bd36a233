#include "engine/unit/effects.h"

#include <cmath>

#include "engine/base/limits.h"
#include "engine/base/varint.h"

namespace sluice {

namespace {

// An entry stores the size of its value in 32 bits.
constexpr uint64_t kMaxEntryValueBytes = UINT32_MAX;

// Decodes the bounds of a list. The limits ensure that computing with them does not overflow.
bool take_bounds(Bytes& from, Effect& effect) {
  constexpr int64_t kLargest = int64_t{1} << 62;
  return take_signed(from, effect.first) && take_varint(from, effect.size) &&
         effect.first >= -kLargest && effect.first <= kLargest && effect.size < uint64_t{kLargest};
}

}  // namespace

char* EffectEncoder::begin(EffectType type, int database, Bytes key, size_t room) {
  char* to = out_.grow(2 + kMaxVarintBytes + key.size() + room);
  *to++ = static_cast<char>(type);
  *to++ = static_cast<char>(database);
  return put_bytes(to, key);
}

void EffectEncoder::end(char* stop) {
  out_.advance(static_cast<size_t>(stop - (out_.data() + out_.size())));
}

void EffectEncoder::put_string(int database, Bytes key, Bytes value, int64_t expire_ms) {
  char* to = begin(EffectType::kPutString, database, key, value.size() + 2 * kMaxVarintBytes);
  end(put_signed(put_bytes(to, value), expire_ms));
}

void EffectEncoder::begin_put_string(int database, Bytes key, size_t value_size) {
  end(put_varint(begin(EffectType::kPutString, database, key, kMaxVarintBytes), value_size));
}

void EffectEncoder::end_put_string(int64_t expire_ms) { put_signed(out_, expire_ms); }

void EffectEncoder::write_string(int database, Bytes key, size_t offset, Bytes bytes, size_t size) {
  char* to = begin(EffectType::kWriteString, database, key, bytes.size() + 3 * kMaxVarintBytes);
  to = put_signed(to, static_cast<int64_t>(offset));
  end(put_varint(put_bytes(to, bytes), size));
}

void EffectEncoder::delete_key(int database, Bytes key) {
  end(begin(EffectType::kDeleteKey, database, key, 0));
}

void EffectEncoder::set_expire(int database, Bytes key, int64_t expire_ms) {
  end(put_signed(begin(EffectType::kSetExpire, database, key, kMaxVarintBytes), expire_ms));
}

void EffectEncoder::flush(uint8_t database) { end(begin(EffectType::kFlush, database, {}, 0)); }

void EffectEncoder::hash_put(int database, Bytes key, Bytes field, Bytes value) {
  char* to =
      begin(EffectType::kHashPut, database, key, field.size() + value.size() + 2 * kMaxVarintBytes);
  end(put_bytes(put_bytes(to, field), value));
}

void EffectEncoder::hash_delete(int database, Bytes key, Bytes field) {
  end(put_bytes(begin(EffectType::kHashDelete, database, key, field.size() + kMaxVarintBytes),
                field));
}

void EffectEncoder::set_add(int database, Bytes key, Bytes member) {
  end(put_bytes(begin(EffectType::kSetAdd, database, key, member.size() + kMaxVarintBytes),
                member));
}

void EffectEncoder::set_remove(int database, Bytes key, Bytes member) {
  end(put_bytes(begin(EffectType::kSetRemove, database, key, member.size() + kMaxVarintBytes),
                member));
}

void EffectEncoder::sorted_put(int database, Bytes key, double score, Bytes member) {
  char* to =
      begin(EffectType::kSortedPut, database, key, member.size() + kMaxVarintBytes + sizeof(score));
  std::memcpy(to, &score, sizeof(score));
  end(put_bytes(to + sizeof(score), member));
}

void EffectEncoder::sorted_remove(int database, Bytes key, Bytes member) {
  end(put_bytes(begin(EffectType::kSortedRemove, database, key, member.size() + kMaxVarintBytes),
                member));
}

void EffectEncoder::list_put(int database, Bytes key, int64_t first, uint64_t size, int64_t index,
                             Bytes item) {
  char* to = begin(EffectType::kListPut, database, key, item.size() + 4 * kMaxVarintBytes);
  to = put_signed(to, first);
  to = put_varint(to, size);
  to = put_signed(to, index);
  end(put_bytes(to, item));
}

void EffectEncoder::list_bounds(int database, Bytes key, int64_t first, uint64_t size) {
  char* to = begin(EffectType::kListBounds, database, key, 2 * kMaxVarintBytes);
  end(put_varint(put_signed(to, first), size));
}

void EffectEncoder::queue_record(EffectType type, int database, Bytes key, Bytes field,
                                 Bytes value) {
  CHECK(is_queue_effect(type));
  put_field_and_value(type, database, key, field, value);
}

void EffectEncoder::stream_record(EffectType type, int database, Bytes key, Bytes field,
                                  Bytes value) {
  CHECK(is_stream_effect(type));
  put_field_and_value(type, database, key, field, value);
}

void EffectEncoder::put_field_and_value(EffectType type, int database, Bytes key, Bytes field,
                                        Bytes value) {
  char* to = begin(type, database, key, field.size() + value.size() + 2 * kMaxVarintBytes);
  end(put_bytes(put_bytes(to, field), value));
}

void EffectEncoder::token_floor(uint64_t token) {
  end(put_signed(begin(EffectType::kTokenFloor, 0, {}, kMaxVarintBytes),
                 static_cast<int64_t>(token)));
}

void EffectEncoder::queue_time(int64_t queue_ms) {
  end(put_signed(begin(EffectType::kQueueTime, 0, {}, kMaxVarintBytes), queue_ms));
}

void EffectEncoder::database_places(Bytes places) {
  char* to = begin(EffectType::kDatabasePlaces, 0, {}, places.size() + kMaxVarintBytes);
  end(put_bytes(to, places));
}

void EffectEncoder::move_key(int database, Bytes key, int to_database, Bytes to_key) {
  char* to = begin(EffectType::kMoveKey, database, key, to_key.size() + 2 * kMaxVarintBytes);
  end(put_bytes(put_varint(to, static_cast<uint64_t>(to_database)), to_key));
}

void EffectEncoder::function_put(Bytes library, Bytes functions, Bytes code) {
  char* to = begin(EffectType::kFunctionPut, 0, library,
                   functions.size() + code.size() + 2 * kMaxVarintBytes);
  end(put_bytes(put_bytes(to, functions), code));
}

void EffectEncoder::function_gone(Bytes library) {
  end(begin(EffectType::kFunctionGone, 0, library, 0));
}

bool decode_effect(Bytes& records, Effect& effect) {
  if (records.size() < 3) return false;
  effect = Effect{};
  effect.type = static_cast<EffectType>(records[0]);
  effect.database = static_cast<uint8_t>(records[1]);
  records.remove_prefix(2);
  if (!take_bytes(records, effect.key)) return false;
  switch (effect.type) {
    case EffectType::kPutString:
      return take_bytes(records, effect.value) && take_signed(records, effect.number);
    case EffectType::kWriteString:
      return take_signed(records, effect.number) && take_bytes(records, effect.value) &&
             take_varint(records, effect.size) && effect.number >= 0 &&
             effect.size <= kMaxEntryValueBytes &&
             static_cast<uint64_t>(effect.number) <= effect.size &&
             effect.value.size() <= effect.size - static_cast<uint64_t>(effect.number);
    case EffectType::kDeleteKey:
    case EffectType::kFlush:
    case EffectType::kFunctionGone:
      return true;
    case EffectType::kSetExpire:
      return take_signed(records, effect.number);
    case EffectType::kDatabasePlaces:
      return take_bytes(records, effect.value);
    case EffectType::kMoveKey:
      return take_varint(records, effect.size) && take_bytes(records, effect.field);
    case EffectType::kTokenFloor:
      return take_signed(records, effect.number) && effect.number >= 0;
    case EffectType::kQueueTime:
      return take_signed(records, effect.number) && effect.number >= 0 &&
             effect.number <= kMaxRecordedTime;
    case EffectType::kHashPut:
    case EffectType::kFunctionPut:
      return take_bytes(records, effect.field) && take_bytes(records, effect.value);
    case EffectType::kHashDelete:
    case EffectType::kSetAdd:
    case EffectType::kSetRemove:
    case EffectType::kSortedRemove:
      return take_bytes(records, effect.field);
    case EffectType::kSortedPut:
      return take_double(records, effect.score) && take_bytes(records, effect.field) &&
             !std::isnan(effect.score);
    case EffectType::kListPut:
      return take_bounds(records, effect) && take_signed(records, effect.number) &&
             take_bytes(records, effect.value) && effect.number >= effect.first &&
             static_cast<uint64_t>(effect.number) - static_cast<uint64_t>(effect.first) <
                 effect.size;
    case EffectType::kListBounds:
      return take_bounds(records, effect);
    default:
      return (is_queue_effect(effect.type) || is_stream_effect(effect.type)) &&
             take_bytes(records, effect.field) && take_bytes(records, effect.value);
  }
}

}  // namespace sluice
