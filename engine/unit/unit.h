// Unit: what one lock hold changes and owes to others: the records for the journal, the keys at
// which waiters may now be served, and the bytes to deliver to other connections once the journal
// has them.
//
// Belongs to one Execution (engine/execution/execution.h), and so to one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
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

struct Delivery {
  std::shared_ptr<ClientPort> to;
  ByteBuffer bytes;
  bool blocked_reply = false;
  enum class Invalidation : uint8_t { kNone, kDirect, kRedirected };
  Invalidation invalidation = Invalidation::kNone;
};

// What a connection that tracks keys is to hear of its own command, when that is done.
struct OwnInvalidation {
  bool everything = false;
  std::string key;
};

// A connection whose command runs in the unit, and where its reply is written. What it is to hear
// meanwhile as a subscriber goes there too, between the parts of the reply, as in Redis.
struct OwnOutput {
  uint64_t client_id = 0;
  ByteBuffer* output = nullptr;
};

// A key at which somebody waits, and what has happened there.
struct SignalledKey {
  enum class What : uint8_t {
    kMore,     // it has (more) elements: more jobs or room for them, of a queue
    kJob,      // something has happened to a job of the queue
    kEvent,    // the queue's log has another event
    kQueue,    // the queue has come into being, or is gone
    kAdopted,  // keys that a queue shows have changed: Unit::adopted_notes says how
  };
  unsigned shard;
  int database;
  std::string key;
  What what = What::kMore;
  std::string job_id = {};  // kJob, kEvent
  // kEvent: its number. kQueue: that of the last event before.
  uint64_t event_seq = 0;
  uint32_t event_type = 0;  // kEvent: a bit (event_bit)

  bool is(What other_what, int other_database, Bytes other_key) const {
    return what == other_what && database == other_database && key == other_key;
  }
};

class Unit {
 public:
  // False during replay, and where nothing is journaled: then effects only change memory.
  bool recording = false;
  // Who will take the records; null: nobody, or one that takes no kMoveKey.
  const Journal* journal = nullptr;
  // A kMoveKey is among the records (Journal::append_moves).
  bool moves_keys = false;
  // During replay collections may be empty for a while, and nothing expires.
  bool replaying = false;
  // The greatest queue time in a record, also of queues that are gone by now.
  int64_t greatest_queue_ms = 0;
  // Not null: expiries go here instead of into their indices, which replay builds at its end.
  ReplayExpiries* replay_expiries = nullptr;
  // CLIENT PAUSE: what has expired stays, and nobody sees it.
  bool paused = false;
  // When it runs. Keys expire by the wall clock, leases by the steady one, the rest of queues by
  // queue time.
  Times times;
  // Keys that are looked up are noted as used in this second (Entry::access_second); 0: they are
  // not, because the command only asks about them.
  uint32_t access_s = 0;
  // The same for values that are put whole, whose key is then as good as new.
  uint32_t write_s = 0;
  ByteBuffer records;
  uint32_t record_count = 0;
  // State changes since the unit began, recorded or not.
  uint64_t changes = 0;
  // Keys that were deleted because their time had come.
  uint64_t expired = 0;
  // Who is told what happens to keys; null: nobody.
  KeyspaceObserver* observer = nullptr;
  // The connection that has sent the command, and the one that is being served by it.
  OwnOutput requester;
  OwnOutput served;
  std::vector<OwnInvalidation> own_invalidations;
  // Keys that somebody tracks by prefix, with the id of who has changed them (0: nobody).
  std::map<std::string, uint64_t, std::less<>> changed_keys;
  std::vector<SignalledKey> ready;
  std::vector<Delivery> deliveries;
  // What MONITOR shows of the unit's commands (engine/clients/slow_log.h).
  ByteBuffer monitor_lines;
  // Queues whose head has changed (record_head_at_end() of engine/queue/queue_records.h); one that
  // goes is taken out.
  std::vector<Queue*> dirty_queues;
  // Large values and queues that the unit has taken out of the keyspace: who works on one may go on
  // until the unit ends. The engine's Reclaimer takes them then.
  std::vector<Retired> retired;
  // What has changed of keys that queues show (engine/keyspace/adopted_watch.h); null: nothing.
  std::shared_ptr<AdoptedNotes> adopted_notes;

  EffectEncoder record() {
    ++record_count;
    return EffectEncoder(records);
  }
  // A record of a queue, if there is recording. `encode(ByteBuffer&)` appends its value.
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
  // Of the record that is being made: its size goes before it.
  ByteBuffer value_;
};

}  // namespace sluice
