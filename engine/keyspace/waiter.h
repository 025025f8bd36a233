// Waiter: a blocked command (BLPOP, BLMOVE, XREADGROUP, Q.POP, Q.EVENTS) of one connection.
//
// One mechanism for all of them. Ownership: shared by the connection that blocks and by the list of
// every key it waits at. Whoever makes a key ready serves the waiters of that key in order of
// arrival, under the lock of the key's shard, inside the same unit as the change: it claims the
// waiter (waiting -> claimed) and runs its command again, which then must find its element. A
// waiter on keys of several shards may be looked at by two threads; the one atomic state decides,
// and the loser moves on. Its own thread ends it (waiting -> gone) on time-out or when the
// connection is lost, under the locks of all its shards. A waiter whose command changes keys of
// other shards too (BLMOVE's destination) makes every command on this shard lock all of them: rare,
// and simple.
//
// Who waits at a queue does not simply take what comes first: a Q.POP may want certain jobs only, a
// Q.GET one job's end. These waiters stand in a QueueWaiters of their own, arranged so that a
// change looks at the few that it may concern (engine/work/queue_serving.h chooses among them).
//
// Pops are served in slices: a unit serves so many, and where further ones may get jobs the queue
// *owes* turns. The shard's timers give them in the order of arrival, each pop that gets something
// in a unit of its own; when the last one has had his, the queue owes none. Meanwhile a new pop for
// which there is a job stands behind those that are there, also one that does not block: it waits
// *in passing*, and is answered when its turn comes.
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
#include "engine/unit/unit.h"

namespace sluice {

class Reply;
struct Call;
struct Command;
struct Shard;
struct User;

enum class WaiterState : uint8_t { kWaiting, kClaimed, kGone };

// What a waiter of a family keeps besides its arguments, parsed once.
struct WaiterRequest {
  virtual ~WaiterRequest() = default;
};

// What a waiter at queues waits for.
struct QueueWait {
  // A Q.POP: it gets a job by the dispatch order, not by `accepts`.
  bool pops = false;
  // Pops with the same signature accept the same jobs, so only the first of them is ever next.
  std::string signature;
  // It waits for this one job (Q.POP with ID, Q.GET, Q.EVENTS with ID); empty: not for a certain
  // one. `accepts` is asked when something happens to the job.
  std::string job_id;
  // A Q.EVENTS: the types of events that it wants, a bit for each (event_bit); 0: it is none.
  // Nothing is done for it before such an event; so it learns only then how far it has come: no
  // event up to `passed_seq` is one that it wants.
  uint32_t event_types = 0;
  uint64_t passed_seq = 0;
  // Worker and request token of a Q.POP with REQID; empty: none.
  std::string request_key;
  // A pop that does not block, and waits only for its turn; at so many queues it has still to come.
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
  // Who waits, for commands that look at his rights when they are served; else null.
  std::shared_ptr<User> user;
  // What the keys must hold; a key of another type is passed over, as in Redis.
  Type wanted = Type::kList;
  std::vector<std::string> keys;
  // Serves this waiter from `key`, which exists with the wanted type and is not empty. Writes one
  // reply.
  void (*serve)(Call& call, Bytes key) = nullptr;
  bool other_shards = false;
  // True: the waiter's command takes an element of another kind than "not empty" (streams' ids):
  // null means that any element will do.
  bool (*accepts)(const Waiter& waiter, const Entry& entry) = nullptr;
  // `serve` also answers when the value is gone (the key does not exist then, or has another type);
  // the others wait on.
  bool served_when_gone = false;
  // Steady time-out; 0: none. The connection's thread keeps the timer.
  int64_t timeout_ms = 0;
  // Writes the reply of the time-out; null: that is a null array, also for BLMOVE, which answers a
  // null where it may not block.
  void (*timed_out)(const Waiter& waiter, Reply& reply) = nullptr;
  // What a family keeps of its arguments.
  std::unique_ptr<WaiterRequest> request;

  // Used where `wanted` is kQueue.
  QueueWait queue;
  // Order of arrival, over all shards; set by Call::block.
  uint64_t order = 0;

  // Ends the waiting, once: the caller that gets true owns the reply. `claim` is for whoever serves
  // the waiter, `give_up` for its own connection (time-out, CLIENT UNBLOCK, the connection's end).
  bool claim() { return leave(WaiterState::kClaimed); }
  bool give_up() { return leave(WaiterState::kGone); }

  void reply_timeout(Reply& reply) const;
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
  // Pops and others that wait for a certain job, by its id.
  std::unordered_map<std::string, ByOrder> by_job;
  // The rest: Q.EVENTS of any job.
  ByOrder others;
  // How many of these want each type of events, by its bit's place.
  std::array<uint32_t, 32> wanted_types{};
  // The last event that the queue's log has had while they waited; 0: none.
  uint64_t last_event_seq = 0;
  // Pops with a request token, by worker and token.
  std::unordered_map<std::string, std::shared_ptr<Waiter>> requests;
  // All pops of these.
  ByOrder all_pops;
  // Those behind `had_turn`, an order, have turns to come (WaiterLists::owe). `may_repeat`: since
  // then there may be jobs for those up to it.
  bool owes_turns = false;
  uint64_t had_turn = 0;
  bool may_repeat = false;

  bool empty() const { return pops.empty() && by_job.empty() && others.empty(); }
  // Some of `others` want events of this type, a bit.
  bool want_event(uint32_t type) const {
    return wanted_types[static_cast<size_t>(std::countr_zero(type))] != 0;
  }
  void add(const std::shared_ptr<Waiter>& waiter);
  // False: it was not here.
  bool remove(const Waiter* waiter);

 private:
  void count_types(uint32_t types, uint32_t one);
};

// The waiters of one shard, by database and key, in order of arrival.
class WaiterLists {
 public:
  using List = QueueWaiters::ByOrder;

  bool empty() const { return count_ == 0; }
  bool no_queue_waiters() const { return queue_count_ == 0; }
  // Some waiter here needs more shards than its key's.
  bool need_other_shards() const { return needing_others_ != 0; }
  void add(const std::string& key, const std::shared_ptr<Waiter>& waiter);
  void remove(const std::string& key, const Waiter* waiter);
  // Of those that do not wait at queues.
  List* find(int database, const std::string& key);
  const List* find(int database, const std::string& key) const;
  QueueWaiters* find_queue(int database, const std::string& key);
  const QueueWaiters* find_queue(int database, const std::string& key) const;
  // Pops at the queue may be served, and get turns.
  void owe(int database, const std::string& key);
  // A queue that owes turns, each in its turn; false: there is none.
  bool next_owing(int& database, std::string& key);
  // Keys of a database at which somebody waits: for a queue, for anything else.
  std::vector<std::string> queue_keys(int database) const;
  std::vector<std::string> keys(int database) const;

 private:
  std::array<std::unordered_map<std::string, List>, 16> by_key_;
  std::array<std::unordered_map<std::string, QueueWaiters>, 16> by_queue_;
  size_t count_ = 0;  // of both kinds
  size_t queue_count_ = 0;
  size_t needing_others_ = 0;
  // Those that owe turns, and perhaps some that do not any more.
  std::deque<std::pair<int, std::string>> owing_;
};

}  // namespace sluice
