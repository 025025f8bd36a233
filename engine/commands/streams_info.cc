// Streams: XINFO.
#include "engine/commands/stream_ids.h"
#include "engine/commands/streams.h"

namespace sluice {

namespace {

constexpr uint64_t kDefaultCount = 10;

struct InfoOptions {
  bool full = false;
  uint64_t count = kDefaultCount;  // 0: all
};

bool parse_info(const Call& call, InfoOptions& options) {
  const size_t words = call.args.size() - 3;
  options.full = words != 0;
  if (!options.full) return true;
  if ((words != 1 && words != 3) || !call.option(3, "FULL") ||
      (words == 3 && !call.option(4, "COUNT"))) {
    return fail(call, "ERR unknown subcommand or wrong number of arguments for '" +
                          std::string(up_to_nul(call.args[1]).substr(0, 128)) +
                          "'. Try XINFO HELP.");
  }
  if (words == 1) return true;
  int64_t count = 0;
  if (!call.integer(5, count)) return false;
  options.count = count < 0 ? kDefaultCount : static_cast<uint64_t>(count);
  return true;
}

// The stream, or null with the error replied.
Entry* find_stream(const Call& call) {
  const Found<Entry> entry = call.find(call.key(2), Type::kStream);
  if (!entry.refused() && entry == nullptr) call.reply.error(errors::kNoSuchKey);
  return entry;
}

void reply_named(Reply& reply, Bytes name, uint64_t number) {
  reply.bulk(name);
  reply.integer(static_cast<int64_t>(number));
}

void reply_named(Reply& reply, Bytes name, const StreamId& id) {
  reply.bulk(name);
  reply_stream_id(reply, id);
}

// The progress of the group: the entries that were read and those that remain.
void reply_progress(Reply& reply, const Stream& stream, const StreamGroup& group) {
  reply.bulk("entries-read");
  if (group.entries_read != StreamGroup::kUnknownReads) {
    reply.integer(group.entries_read);
  } else {
    reply.null();
  }
  reply.bulk("lag");
  const auto lag = stream.lag(group);
  lag ? reply.integer(*lag) : reply.null();
}

// At most `count` (0: all) pending entries, each with its consumer in the list of a group.
void reply_pending_list(Reply& reply, const StreamPendingOrder& pending, bool with_consumer,
                        uint64_t count) {
  reply.bulk("pending");
  uint64_t replied = 0;
  const size_t mark = reply.open_array();
  for (auto at = pending.begin(); at.valid() && (count == 0 || replied != count); at.next()) {
    ++replied;
    reply.array(with_consumer ? 4 : 3);
    reply_stream_id(reply, {at.major(), at.minor()});
    if (with_consumer) reply.bulk(at.value()->consumer->name);
    reply.integer(at.value()->delivered_ms);
    reply.integer(at.value()->deliveries);
  }
  reply.close_array(mark, replied);
}

void reply_full_group(Reply& reply, const Stream& stream, Bytes name, const StreamGroup& group,
                      uint64_t count) {
  reply.map(7);
  reply.bulk("name");
  reply.bulk(name);
  reply_named(reply, "last-delivered-id", group.last_id);
  reply_progress(reply, stream, group);
  reply_named(reply, "pel-count", group.pending().size());
  reply_pending_list(reply, group.pending(), true, count);
  reply.bulk("consumers");
  reply.array(group.consumers().size());
  for (const auto& [consumer_name, consumer] : group.consumers()) {
    reply.map(4);
    reply.bulk("name");
    reply.bulk(consumer_name);
    reply_named(reply, "seen-time", static_cast<uint64_t>(consumer->seen_ms));
    reply_named(reply, "pel-count", consumer->pending.size());
    reply_pending_list(reply, consumer->pending, false, count);
  }
}

// Replies the first or the last entry, or null.
void reply_edge(Reply& reply, Bytes name, const Stream& stream, bool last) {
  reply.bulk(name);
  if (stream.length() == 0) return reply.null();
  const auto visit = [&](const StreamEntry& entry) {
    reply_stream_entry(reply, entry);
    return false;
  };
  last ? stream.each_reverse({}, StreamId::max(), visit) : stream.each({}, StreamId::max(), visit);
}

}  // namespace

void xinfo_stream_command(Call& call) {
  const Entry* entry = find_stream(call);
  if (entry == nullptr) return;
  InfoOptions options;
  if (!parse_info(call, options)) return;
  const Stream& stream = entry->object<Stream>();
  Reply& reply = call.reply;
  reply.map(options.full ? 9 : 10);
  reply_named(reply, "length", stream.length());
  reply_named(reply, "radix-tree-keys", stream.nodes().size());
  reply_named(reply, "radix-tree-nodes", stream.radix_tree_nodes());
  reply_named(reply, "last-generated-id", stream.last_id);
  reply_named(reply, "max-deleted-entry-id", stream.max_deleted_id);
  reply_named(reply, "entries-added", stream.entries_added);
  reply_named(reply, "recorded-first-entry-id", stream.first_entry_id());
  if (!options.full) {
    reply_named(reply, "groups", stream.groups.size());
    reply_edge(reply, "first-entry", stream, false);
    reply_edge(reply, "last-entry", stream, true);
    return;
  }
  reply.bulk("entries");
  reply_stream_range(reply, stream, {}, StreamId::max(), options.count);
  reply.bulk("groups");
  reply.array(stream.groups.size());
  for (const auto& [name, group] : stream.groups) {
    reply_full_group(reply, stream, name, *group, options.count);
  }
}

void xinfo_groups_command(Call& call) {
  const Entry* entry = find_stream(call);
  if (entry == nullptr) return;
  const Stream& stream = entry->object<Stream>();
  call.reply.array(stream.groups.size());
  for (const auto& [name, group] : stream.groups) {
    call.reply.map(6);
    call.reply.bulk("name");
    call.reply.bulk(name);
    reply_named(call.reply, "consumers", group->consumers().size());
    reply_named(call.reply, "pending", group->pending().size());
    reply_named(call.reply, "last-delivered-id", group->last_id);
    reply_progress(call.reply, stream, *group);
  }
}

void xinfo_consumers_command(Call& call) {
  const Entry* entry = find_stream(call);
  if (entry == nullptr) return;
  const auto& groups = entry->object<Stream>().groups;
  const auto found = groups.find(call.args[3]);
  if (found == groups.end()) {
    return call.reply.error("NOGROUP No such consumer group '" +
                            std::string(up_to_nul(call.args[3])) + "' for key name '" +
                            std::string(up_to_nul(call.args[2])) + "'");
  }
  call.reply.array(found->second->consumers().size());
  for (const auto& [name, consumer] : found->second->consumers()) {
    call.reply.map(3);
    call.reply.bulk("name");
    call.reply.bulk(name);
    reply_named(call.reply, "pending", consumer->pending.size());
    const int64_t idle_ms = call.now_ms() - consumer->seen_ms;
    reply_named(call.reply, "idle", static_cast<uint64_t>(idle_ms < 0 ? 0 : idle_ms));
  }
}

}  // namespace sluice
