// Streams: XREAD and XREADGROUP, which may wait for entries.
#include "engine/base/numbers.h"
#include "engine/commands/stream_ids.h"
#include "engine/commands/streams.h"
#include "engine/execution/execution.h"
#include "engine/keyspace/stream_edits.h"

namespace sluice {

namespace {

// The most entries that a reader gets after waiting, unless it gives COUNT.
constexpr uint64_t kMaxAfterWaiting = 1000;

struct ReadRequest {
  std::span<const Bytes> keys;
  size_t first_id = 0;  // its argument
  uint64_t count = 0;   // 0: all
  bool blocks = false;
  int64_t timeout_ms = 0;
  bool of_group = false;
  Bytes group;
  Bytes consumer;
  bool no_ack = false;
};

// One of the streams of a request.
struct ReadPlace {
  Bytes key;
  StreamId after;
  bool of_history = false;  // a consumer's own pending entries
};

// The request of a waiter.
struct StreamWait final : WaiterRequest {
  std::vector<std::pair<std::string, StreamId>> after;  // by key; of XREAD
  bool of_group = false;
  std::string group;
  std::string consumer;
  bool no_ack = false;
  uint64_t count = kMaxAfterWaiting;
};

bool parse_block(const Call& call, size_t argument, ReadRequest& request) {
  // A script's commands do not belong to a connection.
  if (call.nested && call.client.port == nullptr) {
    return fail(call, "ERR " + std::string(up_to_nul(call.args[0])) +
                          " command is not allowed with BLOCK option from scripts");
  }
  const auto timeout_ms = parse_i64(call.args[argument]);
  if (!timeout_ms) return fail(call, "ERR timeout is not an integer or out of range");
  if (*timeout_ms < 0) return fail(call, "ERR timeout is negative");
  request.timeout_ms = *timeout_ms;
  request.blocks = true;
  return true;
}

bool parse_streams(const Call& call, size_t first, ReadRequest& request) {
  const size_t words = call.args.size() - first;
  if (words % 2 != 0) {
    return fail(call,
                "ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be "
                "specified.");
  }
  request.keys = call.args.subspan(first, words / 2);
  request.first_id = first + words / 2;
  return true;
}

bool parse_read(const Call& call, bool of_group, ReadRequest& request) {
  for (size_t at = 1; at < call.args.size() && request.first_id == 0; ++at) {
    const size_t more = call.args.size() - at - 1;
    if (more >= 1 && call.option(at, "BLOCK")) {
      if (!parse_block(call, ++at, request)) return false;
    } else if (more >= 1 && call.option(at, "COUNT")) {
      int64_t count = 0;
      if (!call.integer(++at, count)) return false;
      request.count = count < 0 ? 0 : static_cast<uint64_t>(count);
    } else if (more >= 1 && call.option(at, "STREAMS")) {
      if (!parse_streams(call, at + 1, request)) return false;
    } else if (more >= 2 && call.option(at, "GROUP")) {
      if (!of_group) {
        return fail(call,
                    "ERR The GROUP option is only supported by XREADGROUP. You called XREAD "
                    "instead.");
      }
      request.of_group = true;
      request.group = call.args[at + 1];
      request.consumer = call.args[at + 2];
      at += 2;
    } else if (call.option(at, "NOACK")) {
      if (!of_group) {
        return fail(call,
                    "ERR The NOACK option is only supported by XREADGROUP. You called XREAD "
                    "instead.");
      }
      request.no_ack = true;
    } else {
      return fail(call, errors::kSyntax);
    }
  }
  if (request.first_id == 0) return fail(call, errors::kSyntax);
  if (of_group && !request.of_group) return fail(call, "ERR Missing GROUP option for XREADGROUP");
  return true;
}

// The argument after the word STREAMS, as parse_read() finds it; 0: it refuses these arguments.
size_t first_stream(std::span<const Bytes> args) {
  for (size_t at = 1; at + 1 < args.size(); ++at) {
    const auto is = [&](Bytes word) { return equals_ignore_case(args[at], word); };
    if (is("STREAMS")) return at + 1;
    if (is("GROUP")) {
      at += 2;
    } else if (is("BLOCK") || is("COUNT")) {
      ++at;
    } else if (!is("NOACK")) {
      return 0;
    }
  }
  return 0;
}

StreamGroup* group_of(const Entry* entry, Bytes name) {
  if (entry == nullptr) return nullptr;
  const auto& groups = entry->object<Stream>().groups;
  const auto found = groups.find(name);
  return found == groups.end() ? nullptr : found->second.get();
}

// Parses the id at `argument` for the stream, which may be null.
bool parse_place(const Call& call, size_t argument, const ReadRequest& request, const Entry* entry,
                 ReadPlace& place) {
  const Bytes id = up_to_nul(call.args[argument]);
  if (id == "$") {
    if (request.of_group) {
      return fail(call,
                  "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the "
                  "history of this consumer by specifying a proper ID, or use the > ID to get new "
                  "messages. The $ ID would just return an empty result set.");
    }
    place.after = entry == nullptr ? StreamId{} : entry->object<Stream>().last_id;
    return true;
  }
  // The last present entry, a feature of Redis 7.4.
  if (id == "+" && !request.of_group) {
    place.after = entry == nullptr ? StreamId{} : entry->object<Stream>().last_entry_id();
    if (place.after != StreamId{}) place.after.decrement();
    return true;
  }
  if (id == ">") {
    if (!request.of_group) {
      return fail(call,
                  "ERR The > ID can be specified only when calling XREADGROUP using the GROUP "
                  "<group> <consumer> option.");
    }
    place.after = StreamId::max();
    return true;
  }
  return stream_id_argument(call, argument, place.after);
}

bool parse_places(const Call& call, const ReadRequest& request, std::vector<ReadPlace>& places) {
  for (size_t i = 0; i < request.keys.size(); ++i) {
    const KeyRef key(request.keys[i]);
    const Found<const Entry> entry = call.read(key, Type::kStream);
    if (entry.refused()) return false;
    if (request.of_group && group_of(entry, request.group) == nullptr) {
      return fail(call, "NOGROUP No such key '" + std::string(up_to_nul(key.key)) +
                            "' or consumer group '" + std::string(up_to_nul(request.group)) +
                            "' in XREADGROUP with GROUP option");
    }
    ReadPlace& place = places.emplace_back();
    place.key = key.key;
    if (!parse_place(call, request.first_id + i, request, entry, place)) return false;
    // The highest id means the same as ">".
    place.of_history = request.of_group && place.after != StreamId::max();
  }
  return true;
}

// Replies at most `count` entries after the group's last one and assigns them to the consumer.
void deliver(Call& call, const KeyRef& key, Entry* entry, Bytes group_name, StreamGroup& group,
             StreamConsumer* consumer, uint64_t count, bool no_ack) {
  const Stream& stream = entry->object<Stream>();
  StreamId last = group.last_id;
  int64_t read = group.entries_read;
  StreamId from = last;
  from.increment();
  std::vector<StreamId> ids;
  uint64_t replied = 0;
  const size_t mark = call.reply.open_array();
  stream.each(from, StreamId::max(), [&](const StreamEntry& delivered) {
    const StreamId& id = delivered.id();
    if (id > last) {
      if (read != StreamGroup::kUnknownReads && !stream.may_have_gaps(id)) {
        ++read;
      } else if (stream.entries_added != 0) {
        read = stream.reads_up_to(id);
      }
      last = id;
    }
    reply_stream_entry(call.reply, delivered);
    if (!no_ack) ids.push_back(id);
    return ++replied != count;
  });
  call.reply.close_array(mark, replied);
  if (replied == 0) return;
  StreamEdits edits(call.database(key), key, entry);
  if (!no_ack) edits.put_pending(group_name, consumer, ids, call.now_ms(), 1);
  if (last != group.last_id || read != group.entries_read) edits.put_group(group_name, last, read);
}

// Replies the consumer's pending entries after `after`, which counts as another delivery.
void reply_history(Call& call, const KeyRef& key, Entry* entry, Bytes group,
                   StreamConsumer* consumer, const StreamId& after, uint64_t count) {
  const Stream& stream = entry->object<Stream>();
  StreamEdits edits(call.database(key), key, entry);
  StreamId from = after;
  from.increment();
  uint64_t replied = 0;
  const size_t mark = call.reply.open_array();
  auto at = consumer->pending.lower_bound(from.ms, from.seq);
  for (; at.valid() && (count == 0 || replied != count); at.next(), ++replied) {
    const StreamId id{at.major(), at.minor()};
    bool is_there = false;
    stream.each(id, id, [&](const StreamEntry& delivered) {
      reply_stream_entry(call.reply, delivered);
      is_there = true;
      return false;
    });
    if (is_there) {
      // The consumer does not change, so the order that is walked here does not change either.
      edits.put_pending(group, consumer, {&id, 1}, call.now_ms(), at.value()->deliveries + 1);
    } else {
      call.reply.array(2);
      reply_stream_id(call.reply, id);
      call.reply.null_array();
    }
  }
  call.reply.close_array(mark, replied);
}

// Replies one stream if it has something to reply; the first one opens the reply.
void read_place(Call& call, const ReadRequest& request, const ReadPlace& place, size_t& replied,
                size_t& mark) {
  const KeyRef key(place.key);
  Entry* entry = call.read(key);
  if (entry == nullptr) return;
  const Stream& stream = entry->object<Stream>();
  StreamGroup* group = request.of_group ? group_of(entry, request.group) : nullptr;
  const StreamId after = group != nullptr && !place.of_history ? group->last_id : place.after;
  const bool has_more =
      place.of_history || (stream.length() != 0 && stream.last_entry_id() > after);
  if (!has_more) return;
  if (replied++ == 0) mark = call.reply.open_array();
  if (call.reply.protocol() == 2) call.reply.array(2);
  call.reply.bulk(key.key);
  StreamConsumer* consumer = nullptr;
  if (group != nullptr) {
    consumer =
        StreamEdits(call.database(key), key, entry).see_consumer(request.group, request.consumer);
  }
  if (place.of_history) {
    reply_history(call, key, entry, request.group, consumer, after, request.count);
  } else if (group != nullptr) {
    deliver(call, key, entry, request.group, *group, consumer, request.count, request.no_ack);
  } else {
    StreamId from = after;
    from.increment();
    reply_stream_range(call.reply, stream, from, StreamId::max(), request.count);
  }
}

// --- Waiting ---

const StreamId* waits_after(const StreamWait& wait, Bytes key) {
  for (const auto& [name, after] : wait.after) {
    if (name == key) return &after;
  }
  return nullptr;
}

bool accepts_stream(const Waiter& waiter, const Entry& entry) {
  const auto& wait = static_cast<const StreamWait&>(*waiter.request);
  const Stream& stream = entry.object<Stream>();
  if (!wait.of_group) return stream.last_id > *waits_after(wait, entry.key());
  const StreamGroup* group = group_of(&entry, wait.group);
  // If its group does not exist, the reader gets an error.
  return group == nullptr || stream.last_id > group->last_id;
}

void serve_blocked_read(Call& call, Bytes name) {
  const auto& wait = static_cast<const StreamWait&>(*call.waiter->request);
  const KeyRef key(name);
  Entry* entry = call.find(key);
  if (entry == nullptr || entry->type() != Type::kStream) {
    return call.reply.error("UNBLOCKED the stream key no longer exists");
  }
  const Stream& stream = entry->object<Stream>();
  StreamGroup* group = wait.of_group ? group_of(entry, wait.group) : nullptr;
  if (wait.of_group && group == nullptr) {
    return call.reply.error(
        "NOGROUP the consumer group this client was blocked on no longer exists");
  }
  // The event of a new consumer may come to this connection, so it goes before the reply.
  StreamConsumer* consumer = nullptr;
  if (group != nullptr) {
    consumer = StreamEdits(call.database(key), key, entry).see_consumer(wait.group, wait.consumer);
  }
  if (call.reply.protocol() == 2) {
    call.reply.array(1);
    call.reply.array(2);
  } else {
    call.reply.map(1);
  }
  call.reply.bulk(name);
  if (group != nullptr) {
    deliver(call, key, entry, wait.group, *group, consumer, wait.count, wait.no_ack);
    return;
  }
  StreamId from = *waits_after(wait, name);
  from.increment();
  reply_stream_range(call.reply, stream, from, StreamId::max(), wait.count);
}

void block(Call& call, const ReadRequest& request, const std::vector<ReadPlace>& places) {
  auto wait = std::make_unique<StreamWait>();
  wait->of_group = request.of_group;
  wait->group = request.group;
  wait->consumer = request.consumer;
  wait->no_ack = request.no_ack;
  if (request.count != 0) wait->count = request.count;
  for (const ReadPlace& place : places) wait->after.emplace_back(place.key, place.after);
  auto waiter = std::make_shared<Waiter>();
  waiter->wanted = Type::kStream;
  waiter->serve = serve_blocked_read;
  waiter->accepts = accepts_stream;
  waiter->served_when_gone = request.of_group;
  waiter->timeout_ms = request.timeout_ms;
  waiter->request = std::move(wait);
  call.block(request.keys, std::move(waiter));
}

void read_generic(Call& call, bool of_group) {
  ReadRequest request;
  std::vector<ReadPlace> places;
  if (!parse_read(call, of_group, request)) return;
  if (!parse_places(call, request, places)) return;
  size_t mark = 0;
  size_t replied = 0;
  for (const ReadPlace& place : places) read_place(call, request, place, replied, mark);
  if (replied != 0) {
    call.reply.protocol() == 2 ? call.reply.close_array(mark, replied)
                               : call.reply.close_map(mark, replied);
    return;
  }
  // Inside MULTI it replies as after the time-out.
  if (!request.blocks || call.nested) return call.reply.null_array();
  block(call, request, places);
}

}  // namespace

void xread_command(Call& call) { read_generic(call, false); }
void xreadgroup_command(Call& call) { read_generic(call, true); }

// The specification takes an option's value STREAMS, such as a consumer's name, for the keyword.
void find_read_streams(std::span<const Bytes> args, std::vector<KeyPosition>& positions) {
  const size_t first = first_stream(args);
  if (first == 0) return;
  positions.clear();
  const size_t end = first + (args.size() - first) / 2;
  for (size_t at = first; at < end; ++at) positions.push_back({at, kReadStreamFlags});
}

}  // namespace sluice
