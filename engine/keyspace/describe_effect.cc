#include "engine/keyspace/describe_effect.h"

#include "engine/base/numbers.h"
#include "engine/base/quoting.h"
#include "engine/keyspace/stream_records.h"
#include "engine/queue/queue_records.h"

namespace sluice {

std::string describe_effect(const Effect& effect) {
  const std::string at =
      " db=" + std::to_string(effect.database) + " " + printable_bytes(effect.key);
  const std::string bounds =
      " [" + std::to_string(effect.first) + "+" + std::to_string(effect.size) + "]";
  switch (effect.type) {
    case EffectType::kPutString:
      return "put_string" + at + " " + printable_bytes(effect.value) +
             " expire_ms=" + std::to_string(effect.number);
    case EffectType::kWriteString:
      return "write_string" + at + " offset=" + std::to_string(effect.number) + " " +
             printable_bytes(effect.value) + " size=" + std::to_string(effect.size);
    case EffectType::kDeleteKey:
      return "delete_key" + at;
    case EffectType::kSetExpire:
      return "set_expire" + at + " expire_ms=" + std::to_string(effect.number);
    case EffectType::kFlush:
      return "flush db=" + std::to_string(effect.database);
    case EffectType::kHashPut:
      return "hash_put" + at + " " + printable_bytes(effect.field) + " " +
             printable_bytes(effect.value);
    case EffectType::kHashDelete:
      return "hash_delete" + at + " " + printable_bytes(effect.field);
    case EffectType::kSetAdd:
      return "set_add" + at + " " + printable_bytes(effect.field);
    case EffectType::kSetRemove:
      return "set_remove" + at + " " + printable_bytes(effect.field);
    case EffectType::kSortedPut:
      return "sorted_put" + at + " " + format_double(effect.score) + " " +
             printable_bytes(effect.field);
    case EffectType::kSortedRemove:
      return "sorted_remove" + at + " " + printable_bytes(effect.field);
    case EffectType::kListPut:
      return "list_put" + at + bounds + " index=" + std::to_string(effect.number) + " " +
             printable_bytes(effect.value);
    case EffectType::kListBounds:
      return "list_bounds" + at + bounds;
    case EffectType::kDatabasePlaces: {
      std::string text = "database_places";
      for (const char index : effect.value)
        text += " " + std::to_string(static_cast<uint8_t>(index));
      return text;
    }
    case EffectType::kMoveKey:
      return "move_key" + at + " to db=" + std::to_string(effect.size) + " " +
             printable_bytes(effect.field);
    case EffectType::kTokenFloor:
      return "token_floor " + std::to_string(effect.number);
    case EffectType::kQueueTime:
      return "queue_time " + std::to_string(effect.number);
    case EffectType::kFunctionPut:
      return "function_put " + printable_bytes(effect.key) + " " + printable_bytes(effect.value);
    case EffectType::kFunctionGone:
      return "function_gone " + printable_bytes(effect.key);
    default:
      if (is_queue_effect(effect.type)) return describe_queue_effect(effect);
      if (is_stream_effect(effect.type)) return describe_stream_effect(effect);
      return "unknown";
  }
}

}  // namespace sluice
