// PubSub: the subscribers of each channel and pattern. Shared by all threads, under its own mutex,
// which is never held while waiting for a shard's (the order: shards, then this one).
//
// A subscriber's own list of names is in its Client. The connection's thread changes both together.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/mutex.h"
#include "engine/unit/unit.h"

namespace sluice {

struct Client;

// Appends what ClientPort::deliver got, as the protocol has it: RESP2 has arrays instead of pushes.
void write_message(ByteBuffer& out, int protocol, Bytes message);

class PubSub {
 public:
  enum class Kind : uint8_t { kChannel, kPattern, kShardChannel };

  // Returns whether the subscription changed. Updates the client's own set as well.
  bool subscribe(Client& client, Kind kind, Bytes name);
  bool unsubscribe(Client& client, Kind kind, Bytes name);
  // Removes all subscriptions of this client (RESET, disconnect).
  void forget(Client& client);

  // Queues the message for every subscriber as deliveries of `unit`, so that it is sent when the
  // unit's changes are durable. Returns the number of receivers. Receivers whose command runs in
  // the unit get it in their own output at once.
  size_t publish(Unit& unit, Bytes channel, Bytes message, bool shard_channel);
  // Whether there are no subscribers. Takes no lock.
  bool empty() const { return subscribers_.load(std::memory_order_relaxed) == 0; }

  // PUBSUB CHANNELS / SHARDCHANNELS, NUMSUB, NUMPAT.
  std::vector<std::string> names(Kind kind, Bytes pattern, bool filter) const;
  size_t subscribers(Kind kind, Bytes name) const;
  size_t count(Kind kind) const;
  // The ids of the subscribers of this name.
  std::vector<uint64_t> subscriber_ids(Kind kind, Bytes name) const;

 private:
  struct Subscriber {
    uint64_t client_id;
    std::shared_ptr<ClientPort> port;
  };
  using Table = std::map<std::string, std::vector<Subscriber>, std::less<>>;

  static void send(Unit& unit, const Subscriber& to, Bytes type, Bytes pattern, Bytes channel,
                   Bytes message);
  Table& table(Kind kind) REQUIRES(mutex_) { return tables_[static_cast<size_t>(kind)]; }
  const Table& table(Kind kind) const REQUIRES(mutex_) {
    return tables_[static_cast<size_t>(kind)];
  }

  mutable Mutex mutex_;
  Table tables_[3] GUARDED_BY(mutex_);
  std::atomic<size_t> subscribers_{0};  // so that publishing without subscribers takes no lock
};

}  // namespace sluice
