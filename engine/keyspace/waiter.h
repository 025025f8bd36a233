// Waiter: a blocked command (BLPOP, BLMOVE, XREADGROUP, Q.POP, Q.EVENTS) of one connection.
//
// One mechanism for all of them. Ownership: shared by the blocked connection and by the list of
// every key it waits at. A command that makes a key ready serves the waiters of that key in order
// of arrival, under the lock of the key's shard, inside the same unit as the change: it claims the
// waiter (waiting -> claimed) and runs its command again, which then must find its element. Two
// threads may examine a waiter on keys of several shards; the one atomic state decides, and the
// loser skips it. The waiter's own thread ends it (waiting -> gone) on time-out or when the
// connection is lost, under the locks of all its shards. A waiter whose command also changes keys
// of other shards (BLMOVE's destination) makes every command on this shard lock all of them, which
// is rare, and simple.
//
// Waiters at a queue are more selective: a Q.POP may want only certain jobs, a Q.GET the end of one
// job. They are in a QueueWaiters, arranged so that a change examines only the few waiters that it
// may concern (engine/work/serving.h chooses among them).
//
// Waiters at queues are served in slices: a unit serves a limited number. Others whose answer is
// due are listed, and if more pops may get jobs the queue *owes* turns. The shard's timers give the
// turns in the order of arrival, each pop that gets something in a unit of its own; after the last
// one the queue owes none. Meanwhile a new pop for which there is a job queues behind the waiting
// ones, even if it does not block: it waits *in passing*, and is answered in its turn.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/keyspace/entry.h"
#include "engine/queue/waiting_pops.h"
#include "engine/unit/unit.h"

namespace sluice {

class Queue;
class Reply;
struct Call;
struct Command;
struct Shard;
struct User;

enum class WaiterState : uint8_t { kWaiting, kClaimed, kGone };

// The parsed arguments of a waiter, for its family of commands.
struct WaiterRequest {
  virtual ~WaiterRequest() = default;
  // Writes what stands before the value for which it waits, however the waiting ends.
  virtual void begin_reply(Reply&) const {}
  // Reads a slice of the queue (QueueWait::reads). Returns false at the end.
  virtual bool read_on(const Queue&) { return false; }
};

// What a waiter at queues waits for.
struct QueueWait {
  // Waits only for the end of its own reading, which is done in slices (WaiterRequest::read_on).
  bool reads = false;
  // A Q.POP: the dispatch order assigns it a job, not `accepts`.
  bool pops = false;
  // Pops with the same signature accept the same jobs, so only the first of them can be next.
  std::string signature;
  PopFilter filter;  // of a pop of any job
  // The job it waits for (Q.POP with ID, Q.GET, Q.EVENTS with ID); empty: any job. Examined when
  // the job changes; `accepts` then decides whether it is served.
  std::string job_id;
  // The queue of that job has left this name: a job of this id that is there now is another one.
  bool queue_gone = false;
  // Further jobs, of Q.EVENTS with several IDs; all ids are different.
  std::vector<std::string> more_job_ids;
  // For Q.EVENTS the wanted types of events, a bit for each (event_bit), otherwise 0. Only such an
  // event causes work for the waiter. So its position is computed when it is examined: no event up
  // to `passed_seq` is one that it wants.
  uint32_t event_types = 0;
  uint64_t passed_seq = 0;
  // Worker and request token of a Q.POP with REQID, or empty.
  std::string request_key;
  // A pop that does not block and only waits for its turn, and the number of queues where that is
  // still to come.
  bool in_passing = false;
  std::atomic<size_t> queues_before{0};
};

struct Waiter {
  std::shared_ptr<ClientPort> port;
  const Command* command = nullptr;
  std::vector<std::string> arguments;
  int database = 0;
  int protocol = 2;
  uint64_t client_id = 0;
  // The waiter's user, if it waits at queues: permissions are checked again when it is served.
  // Others are served as in Redis 7.0, whatever has become of them.
  std::shared_ptr<User> user;
  // The type of value to wait for; a key of another type is skipped, as in Redis.
  Type wanted = Type::kList;
  std::vector<std::string> keys;
  // Serves this waiter from `key`, which exists, has the wanted type and is not empty. Writes one
  // reply.
  void (*serve)(Call& call, Bytes key) = nullptr;
  bool other_shards = false;
  // Whether the value has an element that this command takes (streams compare ids). Null: any
  // non-empty value is accepted.
  bool (*accepts)(const Waiter& waiter, const Entry& entry) = nullptr;
  // Also call `serve` when the value is removed (the key does not exist then, or has another type).
  // Other waiters continue to wait.
  bool served_when_gone = false;
  // Also call `serve` when the time is over, under the locks: the reply is what there is then
  // (Departures::leave_late).
  bool served_when_late = false;
  // Time-out by the steady clock; 0: none. The connection's thread keeps the timer.
  int64_t timeout_ms = 0;
  // Writes the reply of the time-out. Null: a null array, even for BLMOVE, which replies a null
  // where it may not block.
  void (*timed_out)(const Waiter& waiter, Reply& reply) = nullptr;
  // The parsed arguments, for the family of the command.
  std::unique_ptr<WaiterRequest> request;

  // Used where `wanted` is kQueue.
  QueueWait queue;
  // Order of arrival, across all shards; set by Call::block.
  uint64_t order = 0;

  // Ends the waiting, once: the caller that gets true owns the reply. `claim` is for the thread
  // that serves it, `give_up` for its own connection (time-out, CLIENT UNBLOCK, the end).
  bool claim() { return leave(WaiterState::kClaimed); }
  bool give_up() { return leave(WaiterState::kGone); }
  bool is_waiting() const { return state_.load() == WaiterState::kWaiting; }

  // The first part of every reply; the value or the error that ends the waiting follows.
  void begin_reply(Reply& reply) const {
    if (request != nullptr) request->begin_reply(reply);
  }
  void reply_timeout(Reply& reply) const;
  void reply_error(Reply& reply, Bytes error) const;
  // Why its user may no longer give this command; empty: nothing has changed.
  std::string lost_right() const;
  // Replies that, if there is something.
  bool refuse_without_right(Reply& reply) const;
  // Claims the waiter, and sends it the reply of the time-out with the unit. False: it was not
  // waiting any more.
  bool send_nothing(Unit& unit);

 private:
  bool leave(WaiterState to) {
    WaiterState expected = WaiterState::kWaiting;
    return state_.compare_exchange_strong(expected, to);
  }

  std::atomic<WaiterState> state_{WaiterState::kWaiting};
};

// The waiters at one queue.
struct QueueWaiters {
  using ByOrder = std::map<uint64_t, std::shared_ptr<Waiter>>;

  // Pops of any job, by signature.
  std::map<std::string, ByOrder> pops;
  WaitingPops counted;  // of these
  // Pops and others that wait for a certain job, by its id.
  std::unordered_map<std::string, ByOrder> by_job;
  // The rest: Q.EVENTS of any job.
  ByOrder others;
  // For each type of event (by its bit's place) the number of these that want it.
  std::array<uint32_t, 32> wanted_types{};
  // The last event of the queue's log while they waited; 0: none.
  uint64_t last_event_seq = 0;
  // Pops with a request token, by worker and token.
  std::unordered_map<std::string, std::shared_ptr<Waiter>> requests;
  // All pops, of `pops`, of `quiet` and of `by_job`.
  ByOrder all_pops;
  // The pops of `by_job`.
  ByOrder named;
  // Pops of any job that get none because their worker is quiet. They are not in `pops`, where the
  // first of a signature stands for all.
  ByOrder quiet;
  // Waiters after `had_turn`, an order, have turns to come (WaiterLists::owe). `may_repeat`: since
  // then there may be jobs for those up to it as well.
  bool owes_turns = false;
  uint64_t had_turn = 0;
  bool may_repeat = false;
  // Pops by ID were passed over because they are too many for one look: the turns begin again.
  bool turns_again = false;
  // Those of `by_job`, `others` and `pops` whose answers have not fitted into one batch.
  ByOrder due;
  // Those that read (QueueWait::reads); in no other list.
  ByOrder reading;
  // It is in WaiterLists::owing_.
  bool listed = false;

  bool empty() const {
    return pops.empty() && quiet.empty() && by_job.empty() && others.empty() && reading.empty();
  }
  bool owes() const { return owes_turns || !due.empty() || !reading.empty(); }
  // The number of pops that may get jobs.
  size_t taking_pops() const { return all_pops.size() - quiet.size(); }
  // Moves a pop that waits here into `quiet`, or back.
  void set_quiet(const std::shared_ptr<Waiter>& waiter, bool is_quiet);
  // Whether some of `others` want events of this type, a bit.
  bool want_event(uint32_t type) const {
    return wanted_types[static_cast<size_t>(std::countr_zero(type))] != 0;
  }
  // Whether a waiter for this job wants its events of this type.
  bool follow_job(const std::string& id, uint32_t type) const;
  // Returns false if it is in the list already.
  bool add(const std::shared_ptr<Waiter>& waiter);
  // Returns false if it was not in the list.
  bool remove(const Waiter* waiter);

 private:
  bool add_pop(const std::shared_ptr<Waiter>& waiter);
  bool remove_pop(const Waiter& waiter);
  void count_types(uint32_t types, uint32_t one);
};

// The waiters of one shard, by database and key, in order of arrival.
class WaiterLists {
 public:
  using List = QueueWaiters::ByOrder;

  bool empty() const { return count_ == 0; }
  bool no_queue_waiters() const { return queue_count_ == 0; }
  // The number of pops that wait at this queue and may get jobs.
  size_t waiting_pops(int database, Bytes key) const;
  // Those of any job by what they accept; null: none has waited here.
  const WaitingPops* counted_pops(int database, Bytes key) const;
  // Whether some waiter here needs more shards than its key's.
  bool need_other_shards() const { return needing_others_ != 0; }
  // Returns false if it waits at this key already.
  bool add(const std::string& key, const std::shared_ptr<Waiter>& waiter);
  void remove(const std::string& key, const Waiter* waiter);
  // For waiters that do not wait at queues.
  List* find(int database, const std::string& key);
  const List* find(int database, const std::string& key) const;
  QueueWaiters* find_queue(int database, const std::string& key);
  const QueueWaiters* find_queue(int database, const std::string& key) const;
  // Marks the queue as owing turns to its pops.
  void owe(int database, const std::string& key);
  // Lists a queue that owes something (QueueWaiters::owes).
  void list_owing(int database, const std::string& key, QueueWaiters& waiters);
  // Finds a queue that owes something, each in its turn. Returns false if no queue does.
  bool next_owing(int& database, std::string& key);
  // Keys of a database with waiters: for queues, for other values.
  std::vector<std::string> queue_keys(int database) const;
  std::vector<std::string> keys(int database) const;

 private:
  std::array<std::unordered_map<std::string, List>, 16> by_key_;
  std::array<std::unordered_map<std::string, QueueWaiters>, 16> by_queue_;
  size_t count_ = 0;  // of both kinds
  size_t queue_count_ = 0;
  size_t needing_others_ = 0;
  // Those that owe something, and perhaps some that no longer do.
  std::deque<std::pair<int, std::string>> owing_;
};

}  // namespace sluice
