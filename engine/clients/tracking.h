// Tracking: client-side caching (CLIENT TRACKING). Who may hold a copy of which key, and who is
// told that it is out of date.
//
// A connection that tracks has a TrackedClient, shared by its Client and by this table. In the
// default mode each key that it reads is remembered, and one change of it is told; with BCAST it
// hears of every change of keys with its prefixes. Names of keys stand for all databases, as in
// Redis.
//
// Any thread; under its own mutex, which comes behind those of the shards. While nobody tracks,
// nothing here is called (Engine::observing).
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/mutex.h"
#include "engine/unit/unit.h"

namespace sluice {

struct Client;

// What CLIENT TRACKING ON asks for.
struct TrackingOptions {
  bool broadcast = false;
  bool opt_in = false;
  bool opt_out = false;
  bool no_loop = false;
  // Whose connection is told instead; 0: its own.
  uint64_t redirect = 0;
  std::shared_ptr<ClientPort> redirect_port;
};

struct TrackedClient {
  uint64_t id = 0;
  // What the table calls it. A connection that tracks again has another number.
  uint64_t number = 0;
  // How many keys the table has for it. Guarded by Tracking's mutex.
  uint64_t items = 0;
  std::shared_ptr<ClientPort> port;
  // Changed by the connection's thread, under Tracking's mutex; that thread reads them without.
  TrackingOptions options;
  std::set<std::string, std::less<>> prefixes;
  int protocol = 2;
  // CLIENT CACHING came just before. Of the connection's thread alone.
  bool caching = false;
  // Who should be told instead is gone.
  std::atomic<bool> broken{false};
};

class Tracking {
 public:
  // `prefixes` come on top of those that the client has; none at all mean every key.
  void enable(Client& client, const TrackingOptions& options,
              const std::vector<std::string>& prefixes);
  void disable(Client& client);
  void set_protocol(Client& client, int protocol);

  // The client has read these keys.
  void remember(TrackedClient& client, const std::vector<Bytes>& keys);
  // A key has changed. What the requester of `unit` is to hear waits in the unit for the end of its
  // command; for those who track by prefix the key is noted there.
  void changed(Unit& unit, Bytes key);
  // A whole database has: everybody is told to forget everything.
  void flushed(Unit& unit);
  // Forgets keys above `max_keys` (0: no limit), as if they had changed.
  void limit(Unit& unit, uint64_t max_keys);
  // What waits for the end of the requester's command. `out`: where its reply stands.
  void write_own(Unit& unit, const Client& client, ByteBuffer* out);
  // Adds what those who track by prefix hear of the unit's keys to its deliveries.
  void broadcast(Unit& unit);

  // What clients had read leaves the table in steps after they have gone, once it is a fifth of
  // the table, as do the buckets that its keys no longer need. A step looks at about `most` items.
  bool must_sweep() const { return must_sweep_.load(std::memory_order_relaxed); }
  void sweep(size_t most);

  // For INFO.
  uint64_t clients() const { return client_count_.load(std::memory_order_relaxed); }
  uint64_t keys() const;
  uint64_t items() const;
  uint64_t prefixes() const;

 private:
  // By number.
  using Clients = std::unordered_map<uint64_t, std::shared_ptr<TrackedClient>>;
  using Numbers = std::set<uint64_t>;
  using Readers = std::unordered_map<std::string, Numbers>;
  // The table is made smaller where it has so many buckets for each key.
  static constexpr size_t kSparseBuckets = 8;
  static constexpr size_t kFewBuckets = 1024;

  void send(Unit& unit, TrackedClient& to, ByteBuffer payload) REQUIRES(mutex_);
  void tell_readers(Unit& unit, Readers::iterator readers) REQUIRES(mutex_);
  void forget_prefixes(TrackedClient& client) REQUIRES(mutex_);
  void forget_gone(Numbers& numbers) REQUIRES(mutex_);
  bool has_many_gone() const REQUIRES(mutex_) { return gone_items_ > items_ / 5; }
  bool is_sparse() const REQUIRES(mutex_) {
    return readers_.bucket_count() > kFewBuckets &&
           readers_.bucket_count() / kSparseBuckets > readers_.size();
  }
  void shrink() REQUIRES(mutex_);

  std::atomic<uint64_t> client_count_{0};
  std::atomic<bool> must_sweep_{false};
  mutable Mutex mutex_;
  Clients clients_ GUARDED_BY(mutex_);
  Readers readers_ GUARDED_BY(mutex_);
  uint64_t items_ GUARDED_BY(mutex_) = 0;
  uint64_t gone_items_ GUARDED_BY(mutex_) = 0;  // of clients that have gone
  uint64_t next_number_ GUARDED_BY(mutex_) = 1;
  // Where the sweep is: a bucket of `readers_`, as long as there are so many.
  size_t swept_buckets_ GUARDED_BY(mutex_) = 0;
  size_t known_buckets_ GUARDED_BY(mutex_) = 0;
  // By prefix, then by the id of the connection.
  std::map<std::string, std::map<uint64_t, std::shared_ptr<TrackedClient>>> by_prefix_
      GUARDED_BY(mutex_);
};

// The message as the connection takes it: a push in RESP3; in RESP2 a message of the channel
// __redis__:invalidate if it is told for another one and subscribes to anything; else nothing.
// `payload`: the array of keys, or null.
void write_invalidation(ByteBuffer& out, const Client& client, bool redirected, Bytes payload);

}  // namespace sluice
