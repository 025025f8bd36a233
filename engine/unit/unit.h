// Unit: the changes of one lock hold and their consequences: the records for the journal, the keys
// at which waiters may now be served, and the messages to other connections that are sent once the
// journal has the records.
//
// Belongs to one Execution (engine/execution/execution.h), and so to one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/reclaimer.h"
#include "engine/base/times.h"
#include "engine/ports/client_port.h"
#include "engine/ports/journal.h"
#include "engine/unit/effects.h"

namespace sluice {

class Queue;

class ReplayExpiries;
class KeyspaceObserver;
struct AdoptedNotes;
struct Shard;

// Written to ClientPort::deliver, deliver_push, and so on.
struct Delivery {
  enum class Kind : uint8_t {
    kMessage,
    kPush,
    kBlockedReply,
    kInvalidation,
    kRedirectedInvalidation,
  };
  std::shared_ptr<ClientPort> to;
  ByteBuffer bytes;
  Kind kind = Kind::kMessage;
};

// An invalidation of a tracking connection by its own command, sent when that has finished.
struct OwnInvalidation {
  bool everything = false;
  std::string key;
};

// A connection whose command runs in the unit, and the buffer of its reply. Messages to it as a
// subscriber go there, too, between the parts of the reply, as in Redis.
struct OwnOutput {
  uint64_t client_id = 0;
  ByteBuffer* output = nullptr;
  int protocol = 2;
};

// A key with waiters, and what has happened there.
struct SignalledKey {
  enum class What : uint8_t {
    kMore,     // it has (more) elements; for a queue: more jobs, or room for them
    kJob,      // something has happened to a job of the queue
    kEvent,    // the queue's log has another event
    kQueue,    // the queue was created or deleted
    kAdopted,  // keys that a queue has adopted have changed, see Unit::adopted_notes
  };
  unsigned shard;
  int database;
  std::string key;
  What what = What::kMore;
  std::string job_id = {};  // kJob, kEvent
  // kEvent: its number. kQueue: the number of the last event before.
  uint64_t event_seq = 0;
  uint32_t event_type = 0;  // kEvent: a bit (event_bit)

  bool is(What other_what, int other_database, Bytes other_key) const {
    return what == other_what && database == other_database && key == other_key;
  }
};

class Unit {
 public:
  // False during replay and where nothing is journaled: then effects only change memory.
  bool recording = false;
  // The journal that takes the records. Null without a journal, and if it does not accept kMoveKey.
  const Journal* journal = nullptr;
  // A kMoveKey is among the records (Journal::append).
  bool moves_keys = false;
  // Records decide everything (recovery, and a standby that follows): collections may be empty
  // temporarily, nothing expires, and no number is chosen here.
  bool told = false;
  // The greatest queue time in any record, including those of deleted queues.
  int64_t greatest_queue_ms = 0;
  // Recovery: expiries go here, and the jobs of queues only into their maps; the end of the replay
  // builds the indexes. Null: every index follows at once.
  ReplayExpiries* replay_expiries = nullptr;
  bool bulk() const { return replay_expiries != nullptr; }
  // CLIENT PAUSE, and while the engine follows: expired keys remain but are invisible.
  bool paused = false;
  // The time of the unit. Keys expire by the wall clock, leases by the steady clock; everything
  // else in queues uses queue time.
  Times times;
  // The second to note as the access time of keys that are looked up (Entry::access_second). 0 if
  // nothing is noted, because the command only inspects keys.
  uint32_t access_s = 0;
  // The same for values that are written as a whole: their key counts as new.
  uint32_t write_s = 0;
  ByteBuffer records;
  uint32_t record_count = 0;
  // Where the records of the request that runs begin: those before are of others in the same hold.
  size_t request_begins = 0;
  size_t changed_bytes() const { return records.size() - request_begins; }
  // State changes since the unit began, recorded or not.
  uint64_t changes = 0;
  // Keys that were deleted because they had expired.
  uint64_t expired = 0;
  // Observes changes of keys. May be null.
  KeyspaceObserver* observer = nullptr;
  // The connection that sent the command, and the blocked one that it serves.
  OwnOutput requester;
  OwnOutput served;
  std::vector<OwnInvalidation> own_invalidations;
  // Keys that are tracked by prefix, with the id of the client that changed them (0: none).
  std::map<std::string, uint64_t, std::less<>> changed_keys;
  std::vector<SignalledKey> ready;
  std::vector<Delivery> deliveries;
  // What MONITOR shows of the unit's commands (engine/clients/slow_log.h).
  ByteBuffer monitor_lines;
  // Queues whose head has changed (record_head_at_end() in engine/queue/queue_records.h). A deleted
  // queue is removed from here.
  std::vector<Queue*> dirty_queues;
  // Large values and queues that the unit has removed from the keyspace. They remain valid until
  // the unit ends; then the engine's Reclaimer takes them.
  std::vector<Retired> retired;
  // Changes of adopted keys (engine/keyspace/adopted_watch.h), or null.
  std::shared_ptr<AdoptedNotes> adopted_notes;
  // The value that is made at the moment is noted as a whole (note_whole_key), not by its elements.
  bool notes_whole_key = false;

  EffectEncoder record() {
    ++record_count;
    return EffectEncoder(records);
  }
  // Adds a record of a queue, if recording. `encode(ByteBuffer&)` appends its value.
  template <class Encode>
  void record_queue(EffectType type, int database, Bytes key, Bytes field, Encode encode) {
    if (!recording) return;
    value_.clear();
    encode(value_);
    record().queue_record(type, database, key, field, value_.view());
  }
  void clear() {
    records.clear();
    records.shrink(1U << 20);
    value_.clear();
    value_.shrink(1U << 20);
    record_count = 0;
    request_begins = 0;
    moves_keys = false;
    changes = 0;
    expired = 0;
    ready.clear();
    deliveries.clear();
    if (!monitor_lines.empty()) {
      monitor_lines.clear();
      monitor_lines.shrink(1U << 16);
    }
    own_invalidations.clear();
    changed_keys.clear();
    dirty_queues.clear();
    adopted_notes.reset();
  }

 private:
  // Scratch for the value of the current record, whose size is written before it.
  ByteBuffer value_;
};

}  // namespace sluice
