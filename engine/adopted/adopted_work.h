// AdoptedWork: queues that have adopted Redis keys (Q.ADOPT), as seen by one unit of work. It
// derives the transitions of jobs from changes of the keys, and changes the keys for Q.MOVE,
// Q.CANCEL and leases.
//
// Plain Redis commands do not call it: their changes are noted (engine/keyspace/adopted_watch.h)
// and settled when the command is done. The state of an element before and after a command gives
// one transition, whatever happened in between, and it is journaled in the unit of the change.
//
// Made for each use, never kept. REQUIRES for the public functions: all shards are locked.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "engine/adopted/adopted_edits.h"
#include "engine/adopted/adopted_state.h"
#include "engine/adopted/adopted_view.h"
#include "engine/base/log_pace.h"
#include "engine/keyspace/database.h"
#include "engine/queue/queue_records.h"

namespace sluice {

// False if settling has ended the adoption: the unit has deleted the queue, or moved it to a name
// where another queue has adopted its keys.
inline bool shows_keys(const Queue& queue) {
  return queue.adopted != nullptr && queue.adopted->group->queue == &queue;
}

class AdoptedWork {
 public:
  AdoptedWork(AdoptedState& state, ShardMask locked, Unit& unit)
      : state_(state), locked_(locked), unit_(unit) {}

  // Settles the notes of the unit.
  void settle();
  // A slice of bringing the records of members up to date: after the adoption, a restart, and
  // changes that could not be settled or are too many.
  void look_on(const std::shared_ptr<AdoptedGroup>& group);
  // Watches the keys of a queue, at which the timers then look: of one that replay has restored, a
  // slice may be missing.
  void watch(Queue& queue);

  // --- Q.ADOPT ---
  // Replaces an earlier adoption of the queue.
  void adopt(Queue& queue, AdoptedDefinition definition);
  void end(Queue& queue);
  // The queue that has adopted this key of the database at the index, or null.
  Queue* adopter_of(int index, Bytes key);

  // --- Q.MOVE, Q.CANCEL, timers ---
  struct Move {
    std::optional<uint8_t> band;
    bool front = false;
    bool back = false;
  };
  // Returns its new position, or nothing for a member that is not pending. REQUIRES: the view has
  // the band.
  std::optional<uint64_t> move(Queue& queue, Bytes id, const Move& move);
  // Returns false if it is in none of the keys. The caller has permission to write its payload.
  bool cancel(Queue& queue, Bytes id, Bytes reason);
  // Returns members whose lease has expired to their pending key, or removes them, `limit` at most.
  // Payloads are removed with the present permissions of the user that adopted the keys.
  void run_leases(Queue& queue, size_t limit);

 private:
  // The notes of a unit about one member. The first note of each key holds the state before.
  struct Change;
  // The cause of a transition, if the keys alone do not show it.
  struct Cause {
    Bytes id;
    EventType event = EventType::kNone;
    Bytes reason = {};
  };

  AdoptedView view(const Queue& queue) { return {state_.shards, queue, unit_.times}; }
  AdoptedEdits edits_of(const Queue& queue) { return {state_.shards, locked_, unit_, queue}; }
  void settle(const Cause& cause);
  // Returns false if not all shards of its queue are locked; the queue's timers then check the
  // keys.
  bool may_settle(const std::shared_ptr<AdoptedGroup>& group);
  void settle_note(const AdoptedNote& note);
  void settle_change(const Change& change, const Cause& cause);
  AdoptedPlace place_before(const AdoptedView& keys, const Change& change,
                            const AdoptedPlace& after) const;
  void renamed(const std::shared_ptr<AdoptedGroup>& group);
  void key_came(Queue& queue, const AdoptedNote& note);
  void key_gone(Queue& queue, const AdoptedNote& note);
  // Examines `left` records at most, and removes those of members that are no longer in the keys:
  // of active ones, of those that were given back (false), or of both. Returns their numbers by
  // band.
  std::map<uint8_t, uint64_t> drop_missing(Queue& queue, AdoptedLook& look, size_t& left,
                                           std::optional<bool> active = {});

  // --- Transitions, engine/adopted/adopted_settle.cc ---
  void added(Queue& queue, const AdoptedPlace& after);
  void started(Queue& queue, const AdoptedPlace& before);
  void left_active(Queue& queue, Bytes id, const Cause& cause);
  void came_back(Queue& queue, const AdoptedPlace& after, const Cause& cause);
  void cancelled(Queue& queue, const AdoptedPlace& before, const Cause& cause);

  // --- Records ---
  void record(Queue& queue, Bytes id, EventType event, const EventFields& fields,
              const AdoptedMember* kept);
  // Null: the adoption has ended.
  void record_definition(Queue& queue, const AdoptedDefinition* definition);
  // The queue changes in this unit: its queue time advances, and its head is recorded at the end.
  void touch(Queue& queue);
  void warn(LogPace& pace, std::string text);

  // --- Watching ---
  const AdoptedWatch* watch_of(int index, Bytes key);
  bool can_watch(const Queue& queue);
  // Ends the adoption.
  void drop_definition(Queue& queue);
  void unwatch(const std::shared_ptr<AdoptedGroup>& group);

  // --- Payloads ---
  bool adopter_may_write(const Queue& queue, Bytes key);
  void remove_lost_payload(const Queue& queue, Bytes id);
  void reclaim(Queue& queue, const std::string& id);

  // The shard of a key.
  Shard& shard(Bytes key) { return state_.shards[KeyRef(key).shard]; }
  Shard& home_shard(const Queue& queue);
  Database home(const Queue& queue);

  AdoptedState& state_;
  ShardMask locked_;
  Unit& unit_;
};

}  // namespace sluice
