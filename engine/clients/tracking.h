// Tracking: client-side caching (CLIENT TRACKING): which clients may hold a copy of which key, and
// the invalidations that are sent to them.
//
// A tracking connection has a TrackedClient, shared by its Client and this table. In the default
// mode each key that it reads is remembered until one change of it is reported. With BCAST every
// change of keys with its prefixes is reported. Names of keys apply to all databases, as in Redis.
//
// Thread-safe, under its own mutex, which is locked after those of the shards. While no client
// tracks, nothing here is called (Engine::observing).
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

// The options of CLIENT TRACKING ON.
struct TrackingOptions {
  bool broadcast = false;
  bool opt_in = false;
  bool opt_out = false;
  bool no_loop = false;
  // The connection that gets the invalidations instead; 0: its own.
  uint64_t redirect = 0;
  std::shared_ptr<ClientPort> redirect_port;
};

struct TrackedClient {
  uint64_t id = 0;
  // Its key in the table. A connection that enables tracking again gets another number.
  uint64_t number = 0;
  // The number of keys that the table has for it. Guarded by Tracking's mutex.
  uint64_t items = 0;
  std::shared_ptr<ClientPort> port;
  // Changed by the connection's thread, under Tracking's mutex; that thread reads them without it.
  TrackingOptions options;
  std::set<std::string, std::less<>> prefixes;
  int protocol = 2;
  // CLIENT CACHING was the previous command. Used only by the connection's thread.
  bool caching = false;
  // The connection that invalidations are redirected to is closed.
  std::atomic<bool> broken{false};
};

class Tracking {
 public:
  // `prefixes` are added to those of the client. Without any prefix every key matches.
  void enable(Client& client, const TrackingOptions& options,
              const std::vector<std::string>& prefixes);
  void disable(Client& client);
  void set_protocol(Client& client, int protocol);

  // The client has read these keys.
  void remember(TrackedClient& client, const std::vector<Bytes>& keys);
  // A key has changed. The requester's own invalidation is kept in the unit until its command ends;
  // for clients that track by prefix the key is noted in the unit.
  void changed(Unit& unit, Bytes key);
  // A whole database was flushed: every client is told to drop all copies.
  void flushed(Unit& unit);
  // Drops keys above `max_keys` (0: no limit), as if they had changed.
  void limit(Unit& unit, uint64_t max_keys);
  // Writes the invalidations that were kept for the end of the requester's command. `out`: the
  // buffer of its reply.
  void write_own(Unit& unit, const Client& client, ByteBuffer* out);
  // Adds the invalidations of clients that track by prefix to the unit's deliveries.
  void broadcast(Unit& unit);

  // Entries of closed clients are removed in steps once they are a fifth of the table, and so are
  // the buckets that its keys no longer need. A step examines about `most` items.
  bool must_sweep() const { return must_sweep_.load(std::memory_order_relaxed); }
  void sweep(size_t most);

  // For INFO.
  uint64_t clients() const { return client_count_.load(std::memory_order_relaxed); }
  uint64_t keys() const;
  uint64_t items() const;
  uint64_t prefixes() const;

 private:
  // By TrackedClient::number.
  using Clients = std::unordered_map<uint64_t, std::shared_ptr<TrackedClient>>;
  using Numbers = std::set<uint64_t>;
  using Readers = std::unordered_map<std::string, Numbers>;
  // The table shrinks when it has this many buckets for each key.
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
  uint64_t gone_items_ GUARDED_BY(mutex_) = 0;  // of closed clients
  uint64_t next_number_ GUARDED_BY(mutex_) = 1;
  // The progress of the sweep: a bucket of `readers_`, valid while the number of buckets is
  // known_buckets_.
  size_t swept_buckets_ GUARDED_BY(mutex_) = 0;
  size_t known_buckets_ GUARDED_BY(mutex_) = 0;
  // By prefix, then by the id of the connection.
  std::map<std::string, std::map<uint64_t, std::shared_ptr<TrackedClient>>> by_prefix_
      GUARDED_BY(mutex_);
};

// Writes the message in the form that the connection accepts: a push in RESP3; in RESP2 a message
// of the channel __redis__:invalidate if invalidations are redirected to it and it has any
// subscription, else nothing. `payload`: the array of keys, or null.
void write_invalidation(ByteBuffer& out, const Client& client, bool redirected, Bytes payload);

}  // namespace sluice
