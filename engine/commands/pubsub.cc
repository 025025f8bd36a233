// Publishing and subscribing; engine/clients/pubsub.h holds the subscribers.
#include "engine/commands/pubsub.h"

#include "engine/clients/pubsub.h"
#include "engine/execution/call.h"
#include "engine/execution/engine.h"

namespace sluice {

namespace {

using Kind = PubSub::Kind;

// Confirms that one subscription has begun or ended. `name` without data: there was no subscription
// to end.
void confirm(Call& call, Bytes what, Bytes name, Kind kind) {
  // Like a message it is sent in any mode of CLIENT REPLY.
  ByteBuffer* const output = call.reply.buffer();
  const bool muted = output != nullptr && call.client.reply_mode != ReplyMode::kOn;
  if (muted) output->resize(call.client.muted_from);
  call.reply.push(3);
  call.reply.bulk(what);
  name.data() == nullptr ? call.reply.null() : call.reply.bulk(name);
  // Shard channels are counted separately, as in Redis.
  const size_t count = kind == Kind::kShardChannel
                           ? call.client.shard_channels.size()
                           : call.client.channels.size() + call.client.patterns.size();
  call.reply.integer(static_cast<int64_t>(count));
  if (muted) call.client.muted_from = output->size();
}

void subscribe(Call& call, Kind kind, Bytes what) {
  if (call.nested && call.client.in_multi == false) {
    return call.reply.error("ERR This Redis command is not allowed from script");
  }
  if (call.nested && kind == Kind::kShardChannel) {
    return call.reply.error("ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client");
  }
  for (const Bytes name : call.args.subspan(1)) {
    call.engine.pubsub().subscribe(call.client, kind, name);
    confirm(call, what, name, kind);
  }
}

void unsubscribe(Call& call, Kind kind, Bytes what, const std::set<std::string, std::less<>>& own) {
  if (call.args.size() == 1) {
    if (own.empty()) return confirm(call, what, {}, kind);
    while (!own.empty()) {
      const std::string name = *own.begin();
      call.engine.pubsub().unsubscribe(call.client, kind, name);
      confirm(call, what, name, kind);
    }
    return;
  }
  for (const Bytes name : call.args.subspan(1)) {
    call.engine.pubsub().unsubscribe(call.client, kind, name);
    confirm(call, what, name, kind);
  }
}

void publish(Call& call, bool shard_channel) {
  const size_t receivers =
      call.engine.pubsub().publish(call.unit, call.args[1], call.args[2], shard_channel);
  call.reply.integer(static_cast<int64_t>(receivers));
}

void list_names(Call& call, Kind kind) {
  if (call.args.size() > 3) {
    return call.reply.error("ERR unknown subcommand or wrong number of arguments for '" +
                            std::string(call.args[1]) + "'. Try PUBSUB HELP.");
  }
  const bool filter = call.args.size() == 3;
  const auto names = call.engine.pubsub().names(kind, filter ? call.args[2] : Bytes(), filter);
  call.reply.array(names.size());
  for (const std::string& name : names) call.reply.bulk(name);
}

void count_subscribers(Call& call, Kind kind) {
  call.reply.array((call.args.size() - 2) * 2);  // not a map in RESP3 either
  for (const Bytes name : call.args.subspan(2)) {
    call.reply.bulk(name);
    call.reply.integer(static_cast<int64_t>(call.engine.pubsub().subscribers(kind, name)));
  }
}

}  // namespace

void subscribe_command(Call& call) { subscribe(call, Kind::kChannel, "subscribe"); }
void psubscribe_command(Call& call) { subscribe(call, Kind::kPattern, "psubscribe"); }
void ssubscribe_command(Call& call) { subscribe(call, Kind::kShardChannel, "ssubscribe"); }

void unsubscribe_command(Call& call) {
  unsubscribe(call, Kind::kChannel, "unsubscribe", call.client.channels);
}
void punsubscribe_command(Call& call) {
  unsubscribe(call, Kind::kPattern, "punsubscribe", call.client.patterns);
}
void sunsubscribe_command(Call& call) {
  unsubscribe(call, Kind::kShardChannel, "sunsubscribe", call.client.shard_channels);
}

void publish_command(Call& call) { publish(call, false); }
void spublish_command(Call& call) { publish(call, true); }

void pubsub_channels_command(Call& call) { list_names(call, Kind::kChannel); }
void pubsub_shardchannels_command(Call& call) { list_names(call, Kind::kShardChannel); }
void pubsub_numsub_command(Call& call) { count_subscribers(call, Kind::kChannel); }
void pubsub_shardnumsub_command(Call& call) { count_subscribers(call, Kind::kShardChannel); }
void pubsub_numpat_command(Call& call) {
  call.reply.integer(static_cast<int64_t>(call.engine.pubsub().count(Kind::kPattern)));
}

}  // namespace sluice
