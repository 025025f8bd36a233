// StreamEdits: changes of the stream of one key, as seen by a unit of work. Like Database's
// functions, each changes memory and, if the unit records, writes the effect.
//
// Made for each use, never kept. REQUIRES for all functions: those of Database. An empty stream is
// not removed.
#pragma once

#include <cstdint>
#include <span>

#include "engine/keyspace/database.h"

namespace sluice {

struct StreamRecord;

class StreamEdits {
 public:
  // REQUIRES: the entry holds a stream.
  StreamEdits(const Database& database, const KeyRef& key, Entry* entry)
      : database_(database), unit_(*database.unit_), key_(key), stream_(entry->object<Stream>()) {}

  // REQUIRES: `id` is greater than the stream's last one. `words`: names and values alternate.
  void add(const StreamId& id, std::span<const Bytes> words);
  bool erase(const StreamId& id);
  // Returns the number of removed entries. REQUIRES: trim.by is not kNothing.
  uint64_t trim(const StreamTrim& trim);
  void set_head(const StreamId& last_id, const StreamId& max_deleted_id, uint64_t entries_added);
  // Makes the group if it is new.
  void put_group(Bytes name, const StreamId& last_id, int64_t entries_read);
  bool remove_group(Bytes name);
  // REQUIRES for the functions below: the group exists.
  // Returns the consumer, which is made if it is new, and updates when it was last seen. For an
  // existing consumer that time is journaled only with its next pending entries.
  StreamConsumer* see_consumer(Bytes group, Bytes name);
  void remove_consumer(Bytes group, Bytes name);
  // REQUIRES: `ids` is not empty.
  void put_pending(Bytes group, StreamConsumer* consumer, std::span<const StreamId> ids,
                   int64_t delivered_ms, int64_t deliveries);
  // Returns how many of them were pending.
  uint64_t acknowledge(Bytes group, std::span<const StreamId> ids);

 private:
  void record(EffectType type, const StreamRecord& record);
  // Records a change that does not invalidate WATCHes.
  void changed(EffectType type, const StreamRecord& change);

  Database database_;
  Unit& unit_;
  const KeyRef key_;
  Stream& stream_;
};

}  // namespace sluice
