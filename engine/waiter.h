// Waiter: a blocked command (BLPOP, BZPOPMIN, BLMOVE, later XREAD and Q.POP) of one connection.
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
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/keyspace/entry.h"
#include "engine/keyspace/unit.h"

namespace sluice {

struct Call;
struct Command;
struct Shard;
struct User;

enum class WaiterState : uint8_t { kWaiting, kClaimed, kGone };

struct Waiter {
  std::atomic<WaiterState> state{WaiterState::kWaiting};
  std::shared_ptr<ClientPort> port;
  const Command* command = nullptr;
  std::vector<std::string> arguments;
  int database = 0;
  int protocol = 2;
  uint64_t client_id = 0;
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
  // Steady time-out; 0: none. The connection's thread keeps the timer.
  int64_t timeout_ms = 0;
};

// The waiters of one shard, by database and key, in order of arrival.
class WaiterLists {
 public:
  using List = std::deque<std::shared_ptr<Waiter>>;

  bool empty() const { return count_ == 0; }
  // Some waiter here needs more shards than its key's.
  bool need_other_shards() const { return needing_others_ != 0; }
  void add(const std::string& key, const std::shared_ptr<Waiter>& waiter);
  void remove(const std::string& key, const Waiter* waiter);
  List* find(int database, const std::string& key);

 private:
  std::array<std::unordered_map<std::string, List>, 16> by_key_;
  size_t count_ = 0;
  size_t needing_others_ = 0;
};

}  // namespace sluice
