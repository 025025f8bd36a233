// QueueWork: one queue as seen by one unit of work. The verbs of a queue hold the rules of the
// contract (QUEUE.md) and are the only way for commands and timers to change the jobs of a queue.
// They are functions in the other files of this folder; QueueWork is what they share: it records a
// change, appends its event, moves jobs between places, and signals waiters.
//
// A handle of a few pointers, made for each command, never kept. REQUIRES for everything in this
// folder: the lock of the key's shard. Job pointers stay valid until a verb says otherwise: a new
// payload moves the job, and a job that is no longer retained is destroyed.
//
// A verb returns what the rules refuse as a Status of kRefused, or as its header says; then nothing
// has changed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/keyspace/database.h"
#include "engine/queue/queue.h"
#include "engine/queue/queue_records.h"

namespace sluice {

// What verbs that end very many jobs have still to tell (needs.h).
struct Telling {
  // Needs that have ended otherwise than completed, whose dependents resolve_needs() has still to
  // end; the last one first.
  std::vector<std::string> failed_needs;
  // What this unit has spent on telling dependents; releases tell the rest.
  size_t cost = 0;
  bool resolving = false;
};

class QueueWork {
 public:
  // `queue` is the object of the entry under `key` in `database`.
  QueueWork(Database database, const KeyRef& key, Queue& queue, Unit& unit);
  // Lists the timers of a queue that has changed.
  ~QueueWork();
  QueueWork(const QueueWork&) = delete;
  QueueWork& operator=(const QueueWork&) = delete;

  Queue& queue() { return *queue_; }
  Database& database() { return database_; }
  Unit& unit() { return *unit_; }
  Bytes key() const { return key_.key; }
  Telling& telling() { return telling_; }
  // Queue time of this unit.
  int64_t now_ms() { return queue_->now(unit_->times.queue_ms); }
  const Times& times() const { return unit_->times; }

  // --- Places ---
  // Sets the state of a waiting job from its needs and its gate, and places it. `backlog`: whether
  // a pending job may be the first of its group (`fair`); kKept where it was only taken out to get
  // another place, so that its group keeps its share.
  enum class Backlog : uint8_t { kJoins, kKept };
  void place_waiting(Job* job, Backlog backlog = Backlog::kJoins);
  void unplace_waiting(Job* job);
  // A LIFO job takes the ticket that it owns, for good.
  void settle(Job* job);
  // Moves an unplaced job to the lane of a band, and of a group and keys. `bound`: to its ticket.
  void change_lane(Job* job, uint8_t band, bool bound);
  void change_lane(Job* job, uint8_t band, Bytes group, std::span<const Bytes> keys, bool bound);
  // The gate that DELAY or AT means, in queue time; 0: none.
  int64_t gate_of(std::optional<int64_t> delay_ms, std::optional<int64_t> at_ms) const;
  // What a job keeps of an AT besides the gate: AT itself where queue time is ahead of the wall
  // clock, else 0.
  int64_t kept_at(std::optional<int64_t> at_ms) const;

  // --- Records ---
  // The job's present value with an event (kNone: without). `put` records all of it, `state` what
  // may change.
  void record_put(Job* job, EventType event, const EventFields& fields = {});
  void record_state(Job* job, EventType event, const EventFields& fields = {});
  void record_gone(Bytes id, EventType event, const EventFields& fields = {});
  // Bytes of the job's log, from this offset on.
  void record_log(const Job& job, uint64_t at, Bytes bytes);
  // The shares and rate tokens that the admission of a job changes.
  void record_limits(const Job& job);
  void record_share(ConfigLevel level, Bytes name, double virtual_ms, int64_t arrival_us);
  void record_group_share(const Group& group);
  // The queue's virtual time and rate, with its head.
  void record_own_share();
  void record_release(const Release& release, RecordedRelease what);
  // `encode(ByteBuffer&)` appends the value; it is not called where nothing is recorded.
  template <class Encode>
  void write(EffectType type, Bytes field, Encode encode) {
    unit_->record_queue(type, database_.index(), key_.key, field, encode);
    wrote(type, field);
  }

  // Something of the queue has changed that only its head records.
  void touched();
  // Only a timer has changed, which is not recorded.
  void change_timers() { timers_changed_ = true; }
  // Waiting Q.POPs at the key may find a job now. Called by every verb that makes work possible.
  void signal();
  // The same for a job that was added, which changes nothing for those that are there.
  void signal_added();

 private:
  void record_job(const Job& job, EffectType type, const RecordedEvent& event);
  // The limits of a job that took up an idle rate, or whose successor did.
  void record_revived(const Job& job);
  RecordedEvent next_event(Bytes id, EventType event, const EventFields& fields);
  void wrote(EffectType type, Bytes field);
  // A pending job makes its group backlogged. Before place().
  void join_backlog(const Job& job);
  // The TTL is a budget of time pending, which runs and is stopped. Of a job in its place; true:
  // the budget has changed.
  bool start_ttl(Job* job);
  bool stop_ttl(Job* job);
  // A LIFO lane has one ticket or job more or less, so another job may be shown as pending or
  // delayed: its budget follows, and is recorded, unless it is `own`, which the caller records.
  void follow_tickets(const Lane& lane, const Job* own);

  Database database_;
  KeyRef key_;
  Queue* queue_;
  Unit* unit_;
  bool timers_changed_ = false;
  Telling telling_;
  // A group that has just become backlogged; its share is recorded behind its job.
  Group* owed_share_ = nullptr;
};

// What is left of the TTL of a job whose budget runs; -1: all of it, as if it had never run.
int64_t ttl_left_ms(const Job& job, int64_t now_ms);
// The place of a job that is bound to its ticket and is neither at the front nor at the back.
void rank_by_release(Job* job);

}  // namespace sluice
