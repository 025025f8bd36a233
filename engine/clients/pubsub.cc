#include "engine/clients/pubsub.h"

#include <algorithm>

#include "engine/clients/client.h"
#include "engine/reply/reply.h"

namespace sluice {

namespace {

std::set<std::string, std::less<>>& own_names(Client& client, PubSub::Kind kind) {
  switch (kind) {
    case PubSub::Kind::kChannel:
      return client.channels;
    case PubSub::Kind::kPattern:
      return client.patterns;
    case PubSub::Kind::kShardChannel:
      return client.shard_channels;
  }
  return client.channels;
}

}  // namespace

void write_message(ByteBuffer& out, int protocol, Bytes message) {
  if (protocol == 2 && message.starts_with('>')) {
    out.append("*");
    message.remove_prefix(1);
  }
  out.append(message);
}

bool PubSub::subscribe(Client& client, Kind kind, Bytes name) {
  if (!own_names(client, kind).emplace(name).second) return false;
  MutexLock lock(mutex_);
  table(kind)[std::string(name)].push_back({client.id, client.port});
  subscribers_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

bool PubSub::unsubscribe(Client& client, Kind kind, Bytes name) {
  auto& own = own_names(client, kind);
  const auto mine = own.find(name);
  if (mine == own.end()) return false;
  MutexLock lock(mutex_);
  const auto found = table(kind).find(name);
  CHECK(found != table(kind).end());
  std::erase_if(found->second, [&](const Subscriber& s) { return s.client_id == client.id; });
  if (found->second.empty()) table(kind).erase(found);
  subscribers_.fetch_sub(1, std::memory_order_relaxed);
  // Erased last, because `name` may be a view of this very string.
  own.erase(mine);
  return true;
}

void PubSub::forget(Client& client) {
  for (const Kind kind : {Kind::kChannel, Kind::kPattern, Kind::kShardChannel}) {
    auto& own = own_names(client, kind);
    while (!own.empty()) unsubscribe(client, kind, *own.begin());
  }
}

void PubSub::send(Unit& unit, const Subscriber& to, Bytes type, Bytes pattern, Bytes channel,
                  Bytes message) {
  ByteBuffer bytes;
  RespReply reply(bytes, 3);
  reply.push(pattern.data() == nullptr ? 3 : 4);
  reply.bulk(type);
  if (pattern.data() != nullptr) reply.bulk(pattern);
  reply.bulk(channel);
  reply.bulk(message);
  for (const OwnOutput& running : {unit.requester, unit.served}) {
    if (running.output == nullptr || running.client_id != to.client_id) continue;
    return write_message(*running.output, running.protocol, bytes.view());
  }
  unit.deliveries.push_back({to.port, std::move(bytes)});
}

size_t PubSub::publish(Unit& unit, Bytes channel, Bytes message, bool shard_channel) {
  if (empty()) return 0;
  MutexLock lock(mutex_);
  size_t receivers = 0;
  const Table& direct = table(shard_channel ? Kind::kShardChannel : Kind::kChannel);
  if (const auto found = direct.find(channel); found != direct.end()) {
    for (const Subscriber& to : found->second) {
      send(unit, to, shard_channel ? "smessage" : "message", {}, channel, message);
      ++receivers;
    }
  }
  if (shard_channel) return receivers;
  for (const auto& [pattern, subscribers] : table(Kind::kPattern)) {
    if (!glob_match(pattern, channel)) continue;
    for (const Subscriber& to : subscribers) {
      send(unit, to, "pmessage", pattern, channel, message);
      ++receivers;
    }
  }
  return receivers;
}

std::vector<std::string> PubSub::names(Kind kind, Bytes pattern, bool filter) const {
  MutexLock lock(mutex_);
  std::vector<std::string> out;
  for (const auto& [name, subscribers] : table(kind)) {
    if (!filter || glob_match(pattern, name)) out.push_back(name);
  }
  return out;
}

size_t PubSub::subscribers(Kind kind, Bytes name) const {
  MutexLock lock(mutex_);
  const auto found = table(kind).find(name);
  return found == table(kind).end() ? 0 : found->second.size();
}

std::vector<uint64_t> PubSub::subscriber_ids(Kind kind, Bytes name) const {
  std::vector<uint64_t> ids;
  MutexLock lock(mutex_);
  const auto found = table(kind).find(name);
  if (found == table(kind).end()) return ids;
  for (const Subscriber& subscriber : found->second) ids.push_back(subscriber.client_id);
  return ids;
}

size_t PubSub::count(Kind kind) const {
  MutexLock lock(mutex_);
  return table(kind).size();
}

}  // namespace sluice
