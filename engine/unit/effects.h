// The effect records: the vocabulary in which state changes are journaled, checkpointed and
// replayed.
//
// A record holds the whole new value of an element: an absolute score, an absolute list index, an
// absolute time; never an increment, a "pop", a duration or "now". So a record may be applied
// again, and on top of a state that already holds later values. That is what makes a fuzzy
// checkpoint correct (storage/). The exception is kMoveKey. Removing a key's last element is
// followed by a kDeleteKey: replay never infers that from an empty collection, because a checkpoint
// may hold another subset of the elements at that point.
//
// The database of a record is the one that holds its keys, which SWAPDB does not change.
// kDatabasePlaces maps the numbers that clients use to it.
//
// Encoding: type byte, database byte, key (varint length, bytes), then the fields named below;
// integers are LEB128 varints, signed ones zigzag, doubles eight bytes little-endian, bytes with
// varint length. Numbers are on disk and are never reused.
#pragma once

#include <cstdint>

#include "engine/base/bytes.h"

namespace sluice {

enum class EffectType : uint8_t {
  kPutString = 1,  // value, expire_ms (0: none)
  kWriteString =
      2,  // offset, bytes, total size: the string becomes `size` long with these bytes there
  kDeleteKey = 3,
  kSetExpire = 4,      // expire_ms, 0: never
  kFlush = 5,          // database 255: all; no key
  kHashPut = 6,        // field, value
  kHashDelete = 7,     // field
  kSetAdd = 8,         // member
  kSetRemove = 9,      // member
  kSortedPut = 10,     // score, member
  kSortedRemove = 11,  // member
  kListPut = 12,  // first index, size, index, item: the list covers [first, first+size) afterwards
  kListBounds = 13,  // first index, size: items outside are removed
  // 14..39: reserved for further Redis types.
  // The native queue: field and value, as engine/queue/queue_records.h describes them.
  kQueueConfig = 40,  // a level and glob of the configuration
  kQueueHead = 41,    // counters of the whole queue
  kJobPut = 42,       // field: id; the whole job
  kJobState = 43,     // field: id; everything that may change in it
  kJobGone = 44,      // field: id
  kQueueShare = 45,   // usage of a group, of a key or of the queue
  kQueueEvents = 46,  // retained events; in checkpoints only
  kTokenFloor = 47,   // no key; number: lower bound for the tokens of queues created later
  // Keys that a queue has adopted (engine/queue/adopted_records.h).
  kQueueAdopted = 48,   // their names, in directories of formats 1 and 2
  kAdoptedMember = 49,  // field: a member of them; its bookkeeping
  // Streams: field and value, as engine/keyspace/stream_records.h describes them.
  kStreamHead = 50,          // last id, highest deleted id, entries ever added
  kStreamNode = 51,          // a whole node of entries
  kStreamAdd = 52,           // an entry
  kStreamDelete = 53,        // deleted entries of a node
  kStreamNodesGone = 54,     // removed nodes, from one to another
  kStreamGroup = 55,         // its read position
  kStreamGroupGone = 56,     // with its consumers and pending entries
  kStreamConsumer = 57,      // when it was last seen
  kStreamConsumerGone = 58,  // with its pending entries
  kStreamPending = 59,       // entries that are pending for a consumer, or no longer pending
  // Libraries of functions; the key is the library's name, the database 0.
  kFunctionPut = 60,  // field: its functions (engine/script/function_library.h), value: its code
  kFunctionGone = 61,
  // No key; value: for the number of each database the index that records use.
  kDatabasePlaces = 62,
  kQueueAdoption = 63,  // like kQueueAdopted, with the user that adopted them
  kQueueTime = 64,      // no key; number: queue time, in checkpoints only; later times are greater
  // size: another database; field: a key in it, which gets the value and the expiry, replacing its
  // own. This is the only record that needs the exact previous state. A checkpoint during whose
  // walk one was appended is discarded.
  kMoveKey = 65,
  kQueueRelease = 70,  // of the native queue; field: id of a job whose dependents are released
  kJobLog = 71,        // of the native queue; field: id; bytes that a run has written
};

// Whether it is a record of the stream at its key.
inline constexpr bool is_stream_effect(EffectType type) {
  return type >= EffectType::kStreamHead && type <= EffectType::kStreamPending;
}

// Whether it is a record of the queue at its key. kTokenFloor and kQueueTime belong to no queue.
inline constexpr bool is_queue_effect(EffectType type) {
  return (type >= EffectType::kQueueConfig && type <= EffectType::kQueueEvents) ||
         type == EffectType::kQueueAdopted || type == EffectType::kAdoptedMember ||
         type == EffectType::kQueueAdoption || type == EffectType::kQueueRelease ||
         type == EffectType::kJobLog;
}

// Whether it is a record of the job that `field` names.
inline constexpr bool is_job_effect(EffectType type) {
  return (type >= EffectType::kJobPut && type <= EffectType::kJobGone) ||
         type == EffectType::kJobLog;
}

inline constexpr bool is_function_effect(EffectType type) {
  return type == EffectType::kFunctionPut || type == EffectType::kFunctionGone;
}

inline constexpr uint8_t kAllDatabases = 255;

// A decoded record; views point into the encoded bytes.
struct Effect {
  EffectType type{};
  uint8_t database = 0;
  Bytes key;
  Bytes field;         // field, member
  Bytes value;         // value, item, bytes
  int64_t number = 0;  // expire_ms, index, offset, token
  int64_t first = 0;
  uint64_t size = 0;
  double score = 0;
};

// Appends records to a buffer. Plain functions of their arguments.
class EffectEncoder {
 public:
  explicit EffectEncoder(ByteBuffer& out) : out_(out) {}

  void put_string(int database, Bytes key, Bytes value, int64_t expire_ms);
  // The same in three steps: writes what precedes the value, the caller appends the value's bytes,
  // and end_put_string() writes the rest.
  void begin_put_string(int database, Bytes key, size_t value_size);
  void end_put_string(int64_t expire_ms);
  void write_string(int database, Bytes key, size_t offset, Bytes bytes, size_t size);
  void delete_key(int database, Bytes key);
  void set_expire(int database, Bytes key, int64_t expire_ms);
  void flush(uint8_t database);
  void hash_put(int database, Bytes key, Bytes field, Bytes value);
  void hash_delete(int database, Bytes key, Bytes field);
  void set_add(int database, Bytes key, Bytes member);
  void set_remove(int database, Bytes key, Bytes member);
  void sorted_put(int database, Bytes key, double score, Bytes member);
  void sorted_remove(int database, Bytes key, Bytes member);
  void list_put(int database, Bytes key, int64_t first, uint64_t size, int64_t index, Bytes item);
  void list_bounds(int database, Bytes key, int64_t first, uint64_t size);
  // REQUIRES: is_queue_effect(type).
  void queue_record(EffectType type, int database, Bytes key, Bytes field, Bytes value);
  void token_floor(uint64_t token);
  void queue_time(int64_t queue_ms);
  // REQUIRES: is_stream_effect(type).
  void stream_record(EffectType type, int database, Bytes key, Bytes field, Bytes value);
  void database_places(Bytes places);
  void move_key(int database, Bytes key, int to_database, Bytes to_key);
  void function_put(Bytes library, Bytes functions, Bytes code);
  void function_gone(Bytes library);

 private:
  char* begin(EffectType type, int database, Bytes key, size_t room);
  void end(char* stop);
  void put_field_and_value(EffectType type, int database, Bytes key, Bytes field, Bytes value);

  ByteBuffer& out_;
};

// Decodes and removes the record at the front of `records`. Returns false if it is damaged or
// unknown.
bool decode_effect(Bytes& records, Effect& effect);

}  // namespace sluice
