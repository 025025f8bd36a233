#include "engine/clients/tracking.h"

#include "engine/clients/client.h"
#include "engine/reply/reply.h"

namespace sluice {

namespace {

ByteBuffer key_payload(Bytes key) {
  ByteBuffer bytes;
  RespReply reply(bytes, 3);
  reply.array(1);
  reply.bulk(key);
  return bytes;
}

ByteBuffer null_payload(int protocol) {
  ByteBuffer bytes;
  RespReply(bytes, protocol).null();
  return bytes;
}

void write_broken(ByteBuffer& out, uint64_t redirect) {
  RespReply reply(out, 3);
  reply.push(2);
  reply.bulk("tracking-redir-broken");
  reply.integer(static_cast<int64_t>(redirect));
}

bool is_requester(const Unit& unit, uint64_t id) { return unit.requester.client_id == id; }

// The client that makes the change: the blocked one that is being served, else the requester; 0:
// none.
uint64_t changer(const Unit& unit) {
  return unit.served.client_id != 0 ? unit.served.client_id : unit.requester.client_id;
}

}  // namespace

void write_invalidation(ByteBuffer& out, const Client& client, bool redirected, Bytes payload) {
  RespReply reply(out, client.protocol);
  if (client.protocol == 3) {
    reply.push(2);
    reply.bulk("invalidate");
  } else if (redirected && client.subscriptions() != 0) {
    reply.array(3);
    reply.bulk("message");
    reply.bulk("__redis__:invalidate");
  } else {
    return;
  }
  out.append(payload);
}

void Tracking::enable(Client& client, const TrackingOptions& options,
                      const std::vector<std::string>& prefixes) {
  MutexLock lock(mutex_);
  if (client.tracking == nullptr) {
    client.tracking = std::make_shared<TrackedClient>();
    client.tracking->id = client.id;
    client.tracking->number = next_number_++;
    client.tracking->port = client.port;
    clients_.emplace(client.tracking->number, client.tracking);
    client_count_.store(clients_.size(), std::memory_order_relaxed);
  }
  TrackedClient& tracked = *client.tracking;
  tracked.options = options;
  tracked.protocol = client.protocol;
  tracked.broken.store(false, std::memory_order_relaxed);
  if (!options.broadcast) return;
  const auto add = [&](const std::string& prefix) REQUIRES(mutex_) {
    tracked.prefixes.insert(prefix);
    by_prefix_[prefix].emplace(client.id, client.tracking);
  };
  if (prefixes.empty()) add("");
  for (const std::string& prefix : prefixes) add(prefix);
}

void Tracking::forget_prefixes(TrackedClient& client) {
  for (const std::string& prefix : client.prefixes) {
    const auto found = by_prefix_.find(prefix);
    found->second.erase(client.id);
    if (found->second.empty()) by_prefix_.erase(found);
  }
  client.prefixes.clear();
}

void Tracking::disable(Client& client) {
  if (client.tracking == nullptr) return;
  MutexLock lock(mutex_);
  forget_prefixes(*client.tracking);
  gone_items_ += client.tracking->items;
  clients_.erase(client.tracking->number);
  client_count_.store(clients_.size(), std::memory_order_relaxed);
  if (has_many_gone() || is_sparse()) must_sweep_.store(true, std::memory_order_relaxed);
  client.tracking = nullptr;
}

void Tracking::set_protocol(Client& client, int protocol) {
  if (client.tracking == nullptr) return;
  MutexLock lock(mutex_);
  client.tracking->protocol = protocol;
}

// --- Reads and changes ---

void Tracking::remember(TrackedClient& client, const std::vector<Bytes>& keys) {
  MutexLock lock(mutex_);
  for (const Bytes key : keys) {
    if (!readers_[std::string(key)].insert(client.number).second) continue;
    ++items_;
    ++client.items;
  }
}

void Tracking::forget_gone(Numbers& numbers) {
  const size_t gone = std::erase_if(
      numbers, [&](uint64_t number) REQUIRES(mutex_) { return !clients_.contains(number); });
  gone_items_ -= gone;
  items_ -= gone;
}

// The next sweep visits the remaining buckets.
void Tracking::shrink() {
  if (readers_.empty()) {
    readers_ = Readers();
  } else if (is_sparse()) {
    readers_.rehash(0);
  }
}

void Tracking::sweep(size_t most) {
  MutexLock lock(mutex_);
  if (known_buckets_ != readers_.bucket_count()) {
    known_buckets_ = readers_.bucket_count();
    swept_buckets_ = 0;
  }
  std::vector<std::string> emptied;
  for (size_t looked = 0; looked < most && swept_buckets_ < known_buckets_; ++swept_buckets_) {
    ++looked;
    for (auto at = readers_.begin(swept_buckets_); at != readers_.end(swept_buckets_); ++at) {
      looked += at->second.size();
      forget_gone(at->second);
      if (at->second.empty()) emptied.push_back(at->first);
    }
  }
  for (const std::string& key : emptied) readers_.erase(key);
  if (swept_buckets_ < known_buckets_) return;
  swept_buckets_ = 0;
  shrink();
  must_sweep_.store(has_many_gone(), std::memory_order_relaxed);
}

void Tracking::send(Unit& unit, TrackedClient& to, ByteBuffer payload) {
  using Kind = Delivery::Kind;
  if (to.port == nullptr) return;
  if (to.options.redirect == 0) {
    unit.deliveries.push_back({to.port, std::move(payload), Kind::kInvalidation});
    return;
  }
  if (to.options.redirect_port->connected()) {
    unit.deliveries.push_back(
        {to.options.redirect_port, std::move(payload), Kind::kRedirectedInvalidation});
    return;
  }
  to.broken.store(true, std::memory_order_relaxed);
  ByteBuffer bytes;
  write_broken(bytes, to.options.redirect);
  unit.deliveries.push_back({to.port, std::move(bytes), Kind::kPush});
}

void Tracking::tell_readers(Unit& unit, Readers::iterator readers) {
  const std::string key = readers->first;
  Numbers numbers = std::move(readers->second);
  readers_.erase(readers);
  forget_gone(numbers);
  items_ -= numbers.size();
  for (const uint64_t number : numbers) {
    const auto found = clients_.find(number);
    --found->second->items;
    if (found->second->options.broadcast) continue;
    if (found->second->options.no_loop && found->second->id == changer(unit)) continue;
    if (is_requester(unit, found->second->id)) {
      unit.own_invalidations.push_back({false, key});
    } else {
      send(unit, *found->second, key_payload(key));
    }
  }
}

void Tracking::changed(Unit& unit, Bytes key) {
  MutexLock lock(mutex_);
  for (const auto& [prefix, clients] : by_prefix_) {
    if (!key.starts_with(prefix)) continue;
    unit.changed_keys.emplace(key, changer(unit));
    break;
  }
  if (readers_.empty()) return;
  const auto found = readers_.find(std::string(key));
  if (found != readers_.end()) tell_readers(unit, found);
}

void Tracking::flushed(Unit& unit) {
  MutexLock lock(mutex_);
  for (const auto& [number, client] : clients_) {
    if (is_requester(unit, client->id)) {
      unit.own_invalidations.push_back({true, {}});
    } else {
      send(unit, *client, null_payload(client->protocol));
    }
    client->items = 0;
  }
  readers_.clear();
  items_ = 0;
  gone_items_ = 0;
}

void Tracking::limit(Unit& unit, uint64_t max_keys) {
  if (max_keys == 0) return;
  MutexLock lock(mutex_);
  // Any key may be dropped; it is treated as if it had changed.
  while (readers_.size() > max_keys) tell_readers(unit, readers_.begin());
}

void Tracking::write_own(Unit& unit, const Client& client, ByteBuffer* out) {
  const std::vector<OwnInvalidation> own = std::move(unit.own_invalidations);
  unit.own_invalidations.clear();
  if (client.tracking == nullptr) return;
  TrackedClient& tracked = *client.tracking;
  MutexLock lock(mutex_);
  for (const OwnInvalidation& each : own) {
    ByteBuffer payload = each.everything ? null_payload(client.protocol) : key_payload(each.key);
    if (tracked.options.redirect == 0 && out != nullptr) {
      write_invalidation(*out, client, false, payload.view());
    } else {
      send(unit, tracked, std::move(payload));
    }
  }
}

void Tracking::broadcast(Unit& unit) {
  MutexLock lock(mutex_);
  for (const auto& [prefix, clients] : by_prefix_) {
    for (const auto& [id, client] : clients) {
      ByteBuffer payload;
      RespReply reply(payload, 3);
      const size_t mark = reply.open_array();
      size_t count = 0;
      for (auto at = unit.changed_keys.lower_bound(prefix);
           at != unit.changed_keys.end() && at->first.starts_with(prefix); ++at) {
        if (client->options.no_loop && at->second == id) continue;
        reply.bulk(at->first);
        ++count;
      }
      if (count == 0) continue;
      reply.close_array(mark, count);
      send(unit, *client, std::move(payload));
    }
  }
  unit.changed_keys.clear();
}

// --- Metrics ---

uint64_t Tracking::keys() const {
  MutexLock lock(mutex_);
  return readers_.size();
}

uint64_t Tracking::items() const {
  MutexLock lock(mutex_);
  return items_;
}

uint64_t Tracking::prefixes() const {
  MutexLock lock(mutex_);
  return by_prefix_.size();
}

}  // namespace sluice
