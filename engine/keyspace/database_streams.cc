// Whole streams, and their effects.
#include "engine/keyspace/database.h"
#include "engine/keyspace/stream_records.h"

namespace sluice {

void Database::record_whole_stream(const KeyRef& key, const Stream& stream) {
  if (!unit_->recording) return;
  StreamCursor cursor;
  const EmitStreamRecord emit = [&](EffectType type, Bytes field, Bytes value) {
    unit_->record().stream_record(type, index_, key.key, field, value);
  };
  while (walk_stream(stream, cursor, SIZE_MAX, emit)) {
  }
}

bool Database::apply_stream(const KeyRef& key, const Effect& effect) {
  if (!apply_stream_effect(replay_collection(key, Type::kStream)->object<Stream>(), effect)) {
    return false;
  }
  const bool has_more =
      effect.type == EffectType::kStreamAdd || effect.type == EffectType::kStreamNode;
  if (has_more) signal(key.key);
  touched(key.key);
  return true;
}

}  // namespace sluice
