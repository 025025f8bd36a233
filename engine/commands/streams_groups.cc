// Streams: consumer groups, acknowledging, and pending entries.
#include <algorithm>

#include "engine/commands/stream_ids.h"
#include "engine/commands/streams.h"
#include "engine/keyspace/stream_edits.h"

namespace sluice {

namespace {

constexpr Bytes kNoStream =
    "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use "
    "the MKSTREAM option to create an empty stream automatically.";

void reply_bad_subcommand(Call& call) {
  call.reply.error("ERR unknown subcommand or wrong number of arguments for '" +
                   std::string(up_to_nul(call.args[1]).substr(0, 128)) + "'. Try XGROUP HELP.");
}

struct GroupOptions {
  bool make_stream = false;
  int64_t entries_read = StreamGroup::kUnknownReads;
};

// Parses the options after the id of XGROUP CREATE (`creates`) and SETID.
bool parse_group_options(Call& call, bool creates, GroupOptions& options) {
  for (size_t at = 5; at < call.args.size(); ++at) {
    if (creates && call.option(at, "MKSTREAM")) {
      options.make_stream = true;
    } else if (call.option(at, "ENTRIESREAD") && at + 1 < call.args.size()) {
      if (!call.integer(++at, options.entries_read)) return false;
      if (options.entries_read < 0 && options.entries_read != StreamGroup::kUnknownReads) {
        return fail(call, "ERR value for ENTRIESREAD must be positive or -1");
      }
    } else {
      reply_bad_subcommand(call);
      return false;
    }
  }
  return true;
}

// Finds the stream of an XGROUP subcommand. Returns false with the error replied. `entry` is null
// if the key is absent, where that is allowed.
bool find_group_stream(Call& call, bool may_be_absent, Entry*& entry) {
  const Found<Entry> found = call.find(call.key(2), Type::kStream);
  if (found.refused()) return false;
  entry = found;
  if (entry != nullptr || may_be_absent) return true;
  return fail(call, kNoStream);
}

// Finds its group as well, with XGROUP's error texts.
StreamGroup* find_named_group(Call& call, Entry*& entry) {
  if (!find_group_stream(call, false, entry)) return nullptr;
  const auto& groups = entry->object<Stream>().groups;
  if (const auto found = groups.find(call.args[3]); found != groups.end()) {
    return found->second.get();
  }
  call.reply.error("NOGROUP No such consumer group '" + std::string(up_to_nul(call.args[3])) +
                   "' for key name '" + std::string(up_to_nul(call.args[2])) + "'");
  return nullptr;
}

// Parses the id up to which a group has read: `$` is the last one.
bool parse_group_id(const Call& call, const Entry* entry, bool strict, StreamId& id) {
  if (up_to_nul(call.args[4]) == "$") {
    id = entry == nullptr ? StreamId{} : entry->object<Stream>().last_id;
    return true;
  }
  if (read_stream_id(call.args[4], id, 0, strict)) return true;
  return fail(call, kInvalidStreamId);
}

}  // namespace

void xgroup_create_command(Call& call) {
  GroupOptions options;
  Entry* entry = nullptr;
  StreamId id;
  if (!parse_group_options(call, true, options) ||
      !find_group_stream(call, options.make_stream, entry)) {
    return;
  }
  if (call.args.size() > 8) return reply_bad_subcommand(call);
  if (!parse_group_id(call, entry, true, id)) return;
  const KeyRef key = call.key(2);
  Database database = call.database(key);
  if (entry == nullptr) {
    entry = database.create(key, Type::kStream);
    database.break_watches(key.key);
  } else if (entry->object<Stream>().groups.contains(call.args[3])) {
    return call.reply.error("BUSYGROUP Consumer Group name already exists");
  }
  StreamEdits(database, key, entry).put_group(call.args[3], id, options.entries_read);
  call.reply.ok();
  database.notify(KeyEvent::kXGroupCreate, key.key);
}

void xgroup_setid_command(Call& call) {
  GroupOptions options;
  Entry* entry = nullptr;
  StreamId id;
  if (!parse_group_options(call, false, options) || find_named_group(call, entry) == nullptr) {
    return;
  }
  if (call.args.size() != 5 && call.args.size() != 7) return reply_bad_subcommand(call);
  if (!parse_group_id(call, entry, false, id)) return;
  const KeyRef key = call.key(2);
  Database database = call.database(key);
  StreamEdits(database, key, entry).put_group(call.args[3], id, options.entries_read);
  call.reply.ok();
  database.notify(KeyEvent::kXGroupSetId, key.key);
}

void xgroup_destroy_command(Call& call) {
  Entry* entry = nullptr;
  if (!find_group_stream(call, false, entry)) return;
  const KeyRef key = call.key(2);
  Database database = call.database(key);
  const bool removed = StreamEdits(database, key, entry).remove_group(call.args[3]);
  call.reply.integer(removed ? 1 : 0);
  if (removed) database.notify(KeyEvent::kXGroupDestroy, key.key);
}

void xgroup_createconsumer_command(Call& call) {
  Entry* entry = nullptr;
  const StreamGroup* group = find_named_group(call, entry);
  if (group == nullptr) return;
  const bool is_new = group->find_consumer(call.args[4]) == nullptr;
  const KeyRef key = call.key(2);
  if (is_new) StreamEdits(call.database(key), key, entry).see_consumer(call.args[3], call.args[4]);
  call.reply.integer(is_new ? 1 : 0);
}

void xgroup_delconsumer_command(Call& call) {
  Entry* entry = nullptr;
  const StreamGroup* group = find_named_group(call, entry);
  if (group == nullptr) return;
  const StreamConsumer* consumer = group->find_consumer(call.args[4]);
  if (consumer == nullptr) return call.reply.integer(0);
  const auto pending = static_cast<int64_t>(consumer->pending.size());
  const KeyRef key = call.key(2);
  Database database = call.database(key);
  StreamEdits(database, key, entry).remove_consumer(call.args[3], call.args[4]);
  database.notify(KeyEvent::kXGroupDelConsumer, key.key);
  call.reply.integer(pending);
}

void xack_command(Call& call) {
  const KeyRef key = call.key(1);
  const Found<Entry> entry = call.read(key, Type::kStream);
  if (entry.refused()) return;
  if (entry == nullptr || !entry->object<Stream>().groups.contains(call.args[2])) {
    return call.reply.integer(0);
  }
  std::vector<StreamId> ids;
  if (!stream_ids_arguments(call, 3, ids)) return;
  call.reply.integer(static_cast<int64_t>(
      StreamEdits(call.database(key), key, entry).acknowledge(call.args[2], ids)));
}

// --- XPENDING ---

namespace {

struct PendingRequest {
  int64_t min_idle_ms = 0;
  StreamId from;
  StreamId to;
  int64_t count = 0;
  bool of_consumer = false;
  Bytes consumer;
};

bool parse_pending(const Call& call, PendingRequest& request) {
  size_t at = 3;
  if (call.option(3, "IDLE")) {
    if (!call.integer(4, request.min_idle_ms)) return false;
    if (call.args.size() < 8) return fail(call, errors::kSyntax);
    at = 5;
  }
  if (!call.integer(at + 2, request.count)) return false;
  request.count = std::max<int64_t>(request.count, 0);
  if (!interval_start(call, at, request.from) || !interval_end(call, at + 1, request.to)) {
    return false;
  }
  request.of_consumer = at + 3 < call.args.size();
  if (request.of_consumer) request.consumer = call.args[at + 3];
  return true;
}

void reply_pending_summary(Reply& reply, const StreamGroup& group) {
  const StreamPendingOrder& pending = group.pending();
  reply.array(4);
  reply.integer(static_cast<int64_t>(pending.size()));
  if (pending.empty()) {
    reply.null();
    reply.null();
    return reply.null_array();
  }
  reply_stream_id(reply, {pending.front().major, pending.front().minor});
  reply_stream_id(reply, {pending.back().major, pending.back().minor});
  size_t busy = 0;
  for (const auto& [name, consumer] : group.consumers()) busy += consumer->pending.empty() ? 0 : 1;
  reply.array(busy);
  for (const auto& [name, consumer] : group.consumers()) {
    if (consumer->pending.empty()) continue;
    reply.array(2);
    reply.bulk(name);
    reply.bulk_integer(static_cast<int64_t>(consumer->pending.size()));
  }
}

void reply_pending(Call& call, const StreamPendingOrder& pending, const PendingRequest& request) {
  int64_t left = request.count;
  size_t replied = 0;
  const size_t mark = call.reply.open_array();
  auto at = pending.lower_bound(request.from.ms, request.from.seq);
  for (; left != 0 && at.valid(); at.next()) {
    const StreamId id{at.major(), at.minor()};
    if (id > request.to) break;
    const StreamPending& entry = *at.value();
    const int64_t idle_ms = call.now_ms() - entry.delivered_ms;
    if (request.min_idle_ms != 0 && idle_ms < request.min_idle_ms) continue;
    --left;
    ++replied;
    call.reply.array(4);
    reply_stream_id(call.reply, id);
    call.reply.bulk(entry.consumer->name);
    call.reply.integer(std::max<int64_t>(idle_ms, 0));
    call.reply.integer(entry.deliveries);
  }
  call.reply.close_array(mark, replied);
}

}  // namespace

void xpending_command(Call& call) {
  const bool summary = call.args.size() == 3;
  if (!summary && (call.args.size() < 6 || call.args.size() > 9)) {
    return call.reply.error(errors::kSyntax);
  }
  PendingRequest request;
  if (!summary && !parse_pending(call, request)) return;
  Entry* entry = nullptr;
  const StreamGroup* group = find_group(call, call.key(1), call.args[2], entry);
  if (group == nullptr) return;
  if (summary) return reply_pending_summary(call.reply, *group);
  if (!request.of_consumer) return reply_pending(call, group->pending(), request);
  const StreamConsumer* consumer = group->find_consumer(request.consumer);
  if (consumer == nullptr) return call.reply.array(0);
  reply_pending(call, consumer->pending, request);
}

}  // namespace sluice
