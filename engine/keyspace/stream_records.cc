#include "engine/keyspace/stream_records.h"

#include <algorithm>

#include "engine/base/quoting.h"
#include "engine/base/varint.h"

namespace sluice {

namespace {

void put_id(std::string& to, const StreamId& id) {
  put_varint(to, id.ms);
  put_varint(to, id.seq);
}

bool take_id(Bytes& from, StreamId& id) {
  return take_varint(from, id.ms) && take_varint(from, id.seq);
}

// Decodes the next id of a list; `id` is the one before it.
bool take_next_id(Bytes& from, StreamId& id) {
  int64_t ms = 0;
  int64_t seq = 0;
  if (!take_signed(from, ms)) return false;
  id.ms += static_cast<uint64_t>(ms);
  if (ms != 0) return take_varint(from, id.seq);
  if (!take_signed(from, seq)) return false;
  id.seq += static_cast<uint64_t>(seq);
  return true;
}

void put_next_id(std::string& to, const StreamId& previous, const StreamId& id) {
  put_signed(to, static_cast<int64_t>(id.ms - previous.ms));
  if (id.ms != previous.ms) {
    put_varint(to, id.seq);
  } else {
    put_signed(to, static_cast<int64_t>(id.seq - previous.seq));
  }
}

}  // namespace

// --- Writing ---

StreamRecord encode_stream_head(const Stream& stream) {
  StreamRecord record;
  put_id(record.value, stream.last_id);
  put_id(record.value, stream.max_deleted_id);
  put_varint(record.value, stream.entries_added);
  return record;
}

StreamRecord encode_stream_node(const StreamNode& node) {
  StreamRecord record;
  put_id(record.field, node.first_id());
  put_id(record.value, node.last_id());
  put_varint(record.value, node.live());
  put_varint(record.value, node.deleted());
  put_varint(record.value, node.listpack_bytes());
  put_varint(record.value, node.names().size());
  record.value.append(node.names());
  record.value.append(node.entries());
  return record;
}

StreamAddRecord encode_stream_add(const Stream& stream, const StreamNode& node) {
  StreamAddRecord record;
  const bool is_first = node.last_id() == node.first_id();
  const size_t names_size = is_first ? node.names().size() : 0;
  put_id(record.field, node.first_id());
  put_varint(record.field, node.deleted());
  put_varint(record.field, node.listpack_bytes());
  put_varint(record.field, stream.entries_added);
  put_varint(record.field, names_size);
  // The names are before the first entry.
  record.value = {node.last_packed().data() - names_size, node.last_packed().size() + names_size};
  return record;
}

StreamRecord encode_stream_delete(const StreamNode& node, std::span<const StreamId> ids) {
  StreamRecord record;
  put_id(record.field, node.first_id());
  put_varint(record.field, node.deleted());
  StreamId previous;
  for (const StreamId& id : ids) {
    put_next_id(record.value, previous, id);
    previous = id;
  }
  return record;
}

StreamRecord encode_stream_nodes_gone(const StreamId& first, const StreamId& last) {
  StreamRecord record;
  put_id(record.field, first);
  put_id(record.field, last);
  return record;
}

StreamRecord encode_stream_group(Bytes name, const StreamGroup& group) {
  StreamRecord record;
  record.field = name;
  put_id(record.value, group.last_id);
  put_signed(record.value, group.entries_read);
  return record;
}

StreamRecord encode_stream_consumer(Bytes group, const StreamConsumer& consumer) {
  StreamRecord record;
  record.field = group;
  put_signed(record.value, consumer.seen_ms);
  record.value += consumer.name;
  return record;
}

StreamPendingEncoder::StreamPendingEncoder() { value_ += '\0'; }

StreamPendingEncoder::StreamPendingEncoder(Bytes consumer, int64_t delivered_ms,
                                           int64_t deliveries) {
  value_ += '\1';
  put_bytes(value_, consumer);
  put_signed(value_, delivered_ms);
  put_signed(value_, deliveries);
}

void StreamPendingEncoder::add(const StreamId& id) {
  put_next_id(value_, previous_, id);
  previous_ = id;
  ++count_;
}

// --- Replay ---

namespace {

StreamGroup& replay_group(Stream& stream, Bytes name) {
  auto found = stream.groups.find(name);
  if (found == stream.groups.end()) {
    found = stream.groups.emplace(std::string(name), std::make_unique<StreamGroup>()).first;
  }
  return *found->second;
}

StreamConsumer* replay_consumer(StreamGroup& group, Bytes name, int64_t seen_ms) {
  StreamConsumer* consumer = group.find_consumer(name);
  if (consumer == nullptr) return group.add_consumer(name, seen_ms);
  consumer->seen_ms = std::max(consumer->seen_ms, seen_ms);
  return consumer;
}

bool apply_head(Stream& stream, Bytes from) {
  return take_id(from, stream.last_id) && take_id(from, stream.max_deleted_id) &&
         take_varint(from, stream.entries_added) && from.empty();
}

bool apply_node(Stream& stream, Bytes field, Bytes from) {
  StreamNode::Image image;
  uint64_t names_size = 0;
  if (!take_id(field, image.first) || !field.empty() || !take_id(from, image.last) ||
      !take_varint(from, image.live) || !take_varint(from, image.deleted) ||
      !take_varint(from, image.listpack_bytes) || !take_varint(from, names_size) ||
      names_size > from.size()) {
    return false;
  }
  image.names = from.substr(0, names_size);
  image.entries = from.substr(names_size);
  StreamNode* node = StreamNode::make(image);
  if (node == nullptr) return false;
  stream.put_node(node);
  return true;
}

bool apply_add(Stream& stream, Bytes field, Bytes value) {
  StreamNode::Image image;
  uint64_t added = 0;
  uint64_t names_size = 0;
  if (!take_id(field, image.first) || !take_varint(field, image.deleted) ||
      !take_varint(field, image.listpack_bytes) || !take_varint(field, added) ||
      !take_varint(field, names_size) || !field.empty() || names_size > value.size()) {
    return false;
  }
  image.names = value.substr(0, names_size);
  const Bytes packed = value.substr(names_size);
  StreamId id;
  if (!StreamNode::read_id(packed, image.first, id)) return false;
  stream.last_id = id;
  stream.entries_added = added;
  // The first entry makes the node; later ones find it, unless it was removed later.
  if (names_size != 0 && stream.find_node(image.first) == nullptr) {
    image.last = id;
    image.live = 1;
    image.entries = packed;
    StreamNode* node = StreamNode::make(image);
    if (node == nullptr) return false;
    stream.put_node(node);
    return true;
  }
  return stream.put_entry(image.first, packed, image.deleted, image.listpack_bytes);
}

bool apply_delete(Stream& stream, Bytes field, Bytes value) {
  StreamId first;
  uint64_t deleted = 0;
  if (!take_id(field, first) || !take_varint(field, deleted) || !field.empty() ||
      deleted > UINT32_MAX) {
    return false;
  }
  StreamNode* node = stream.find_node(first);
  for (StreamId id; !value.empty();) {
    if (!take_next_id(value, id)) return false;
    if (node != nullptr) stream.erase_in(*node, id);
  }
  if (node != nullptr) node->set_deleted(static_cast<uint32_t>(deleted));
  return true;
}

bool apply_nodes_gone(Stream& stream, Bytes field) {
  StreamId first;
  StreamId last;
  if (!take_id(field, first) || !take_id(field, last) || !field.empty()) return false;
  for (StreamNode* node = stream.node_from(first); node != nullptr && node->first_id() <= last;
       node = stream.node_from(first)) {
    stream.remove_node(node);
  }
  return true;
}

bool apply_group(Stream& stream, Bytes name, Bytes from) {
  StreamGroup& group = replay_group(stream, name);
  return take_id(from, group.last_id) && take_signed(from, group.entries_read) && from.empty();
}

bool apply_consumer(Stream& stream, Bytes group, Bytes from) {
  int64_t seen_ms = 0;
  if (!take_signed(from, seen_ms)) return false;
  replay_consumer(replay_group(stream, group), from, seen_ms);
  return true;
}

bool apply_pending(Stream& stream, Bytes name, Bytes from) {
  if (from.empty()) return false;
  const bool put = from[0] == 1;
  if (!put && from[0] != 0) return false;
  from.remove_prefix(1);
  StreamGroup& group = replay_group(stream, name);
  StreamConsumer* consumer = nullptr;
  Bytes consumer_name;
  int64_t delivered_ms = 0;
  int64_t deliveries = 0;
  if (put) {
    if (!take_bytes(from, consumer_name) || !take_signed(from, delivered_ms) ||
        !take_signed(from, deliveries)) {
      return false;
    }
    consumer = replay_consumer(group, consumer_name, delivered_ms);
  }
  for (StreamId id; !from.empty();) {
    if (!take_next_id(from, id)) return false;
    if (put) {
      group.put_pending(id, consumer, delivered_ms, deliveries);
    } else {
      group.remove_pending(id);
    }
  }
  return true;
}

}  // namespace

bool apply_stream_effect(Stream& stream, const Effect& effect) {
  switch (effect.type) {
    case EffectType::kStreamHead:
      return effect.field.empty() && apply_head(stream, effect.value);
    case EffectType::kStreamNode:
      return apply_node(stream, effect.field, effect.value);
    case EffectType::kStreamAdd:
      return apply_add(stream, effect.field, effect.value);
    case EffectType::kStreamDelete:
      return apply_delete(stream, effect.field, effect.value);
    case EffectType::kStreamNodesGone:
      return effect.value.empty() && apply_nodes_gone(stream, effect.field);
    case EffectType::kStreamGroup:
      return apply_group(stream, effect.field, effect.value);
    case EffectType::kStreamGroupGone:
      if (const auto found = stream.groups.find(effect.field); found != stream.groups.end()) {
        stream.groups.erase(found);
      }
      return effect.value.empty();
    case EffectType::kStreamConsumer:
      return apply_consumer(stream, effect.field, effect.value);
    case EffectType::kStreamConsumerGone:
      if (const auto found = stream.groups.find(effect.field); found != stream.groups.end()) {
        found->second->remove_consumer(effect.value);
      }
      return true;
    case EffectType::kStreamPending:
      return apply_pending(stream, effect.field, effect.value);
    default:
      return false;
  }
}

// --- Walking ---

namespace {

// A record with more bytes counts as more than one element.
constexpr size_t kElementBytes = 256;

class StreamWalk {
 public:
  StreamWalk(const Stream& stream, StreamCursor& cursor, size_t limit, const EmitStreamRecord& emit)
      : stream_(stream), cursor_(cursor), left_(limit), emit_(emit) {}

  bool run() {
    using Part = StreamCursor::Part;
    while (cursor_.part != Part::kDone) {
      if (left_ == 0) return true;
      switch (cursor_.part) {
        case Part::kHead:
          write(EffectType::kStreamHead, encode_stream_head(stream_), 1);
          cursor_.part = Part::kNodes;
          break;
        case Part::kNodes:
          walk_nodes();
          break;
        case Part::kGroups:
          next_group();
          break;
        case Part::kConsumers:
          walk_consumers();
          break;
        case Part::kPending:
          walk_pending();
          break;
        case Part::kDone:
          break;
      }
    }
    return false;
  }

 private:
  void write(EffectType type, const StreamRecord& record, size_t elements) {
    emit_(type, record.field, record.value);
    left_ -= std::min(left_, std::max(elements, record.value.size() / kElementBytes));
  }

  void walk_nodes() {
    const StreamNode* node = stream_.node_from(cursor_.next_node);
    if (node != nullptr) {
      write(EffectType::kStreamNode, encode_stream_node(*node), 1 + node->live());
      cursor_.next_node = node->first_id();
    }
    // There is no node after the greatest possible id.
    if (node == nullptr || !cursor_.next_node.increment()) {
      cursor_.part = StreamCursor::Part::kGroups;
    }
  }

  void next_group() {
    const auto found =
        cursor_.any_group ? stream_.groups.upper_bound(cursor_.group) : stream_.groups.begin();
    if (found == stream_.groups.end()) {
      cursor_.part = StreamCursor::Part::kDone;
      return;
    }
    write(EffectType::kStreamGroup, encode_stream_group(found->first, *found->second), 1);
    cursor_.group = found->first;
    cursor_.any_group = true;
    cursor_.any_consumer = false;
    cursor_.next_pending = {};
    cursor_.part = StreamCursor::Part::kConsumers;
  }

  // The group of the cursor. If it was removed, moves the cursor to the next one and returns null.
  const StreamGroup* group_at_hand() {
    const auto found = stream_.groups.find(cursor_.group);
    if (found != stream_.groups.end()) return found->second.get();
    cursor_.part = StreamCursor::Part::kGroups;
    return nullptr;
  }

  void walk_consumers() {
    const StreamGroup* group = group_at_hand();
    if (group == nullptr) return;
    const auto& consumers = group->consumers();
    auto at = cursor_.any_consumer ? consumers.upper_bound(cursor_.consumer) : consumers.begin();
    for (; at != consumers.end() && left_ != 0; ++at) {
      write(EffectType::kStreamConsumer, encode_stream_consumer(cursor_.group, *at->second), 1);
      cursor_.consumer = at->first;
      cursor_.any_consumer = true;
    }
    if (at == consumers.end()) cursor_.part = StreamCursor::Part::kPending;
  }

  // Entries that were delivered together share a record.
  void walk_pending() {
    const StreamGroup* group = group_at_hand();
    if (group == nullptr) return;
    auto at = group->pending().lower_bound(cursor_.next_pending.ms, cursor_.next_pending.seq);
    while (at.valid() && left_ != 0) {
      const StreamPending& first = *at.value();
      StreamPendingEncoder encoder(first.consumer->name, first.delivered_ms, first.deliveries);
      StreamId id;
      for (; at.valid() && left_ != 0; at.next(), --left_) {
        const StreamPending& next = *at.value();
        if (next.consumer != first.consumer || next.delivered_ms != first.delivered_ms ||
            next.deliveries != first.deliveries) {
          break;
        }
        id = {at.major(), at.minor()};
        encoder.add(id);
      }
      emit_(EffectType::kStreamPending, cursor_.group, encoder.value());
      cursor_.next_pending = id;
      // After the greatest possible id `at` is at the end.
      cursor_.next_pending.increment();
    }
    if (!at.valid()) cursor_.part = StreamCursor::Part::kGroups;
  }

  const Stream& stream_;
  StreamCursor& cursor_;
  size_t left_;
  const EmitStreamRecord& emit_;
};

}  // namespace

bool walk_stream(const Stream& stream, StreamCursor& cursor, size_t limit,
                 const EmitStreamRecord& emit) {
  return StreamWalk(stream, cursor, limit, emit).run();
}

// --- For people ---

namespace {

std::string id_text(const StreamId& id) {
  return std::to_string(id.ms) + "-" + std::to_string(id.seq);
}

std::string describe_ids(Bytes from) {
  std::string out;
  size_t count = 0;
  for (StreamId id; !from.empty(); ++count) {
    if (!take_next_id(from, id)) return out + " damaged";
    if (count < 4) out += " " + id_text(id);
  }
  return count <= 4 ? out : out + " ..(" + std::to_string(count) + " ids)";
}

std::string describe_head(Bytes from) {
  Stream stream;
  if (!apply_head(stream, from)) return " damaged";
  return " last=" + id_text(stream.last_id) + " max_deleted=" + id_text(stream.max_deleted_id) +
         " added=" + std::to_string(stream.entries_added);
}

std::string describe_node(Bytes field, Bytes from) {
  StreamId first;
  StreamId last;
  uint64_t live = 0;
  uint64_t deleted = 0;
  if (!take_id(field, first) || !take_id(from, last) || !take_varint(from, live) ||
      !take_varint(from, deleted)) {
    return " damaged";
  }
  return " first=" + id_text(first) + " last=" + id_text(last) +
         " entries=" + std::to_string(live) + " deleted=" + std::to_string(deleted);
}

std::string describe_add(Bytes field, Bytes value) {
  StreamId first;
  uint64_t number = 0;
  uint64_t names_size = 0;
  StreamId id;
  // The counters of the node, then the size of the names.
  if (!take_id(field, first) || !take_varint(field, number) || !take_varint(field, number) ||
      !take_varint(field, number) || !take_varint(field, names_size) || names_size > value.size() ||
      !StreamNode::read_id(value.substr(names_size), first, id)) {
    return " damaged";
  }
  return " " + id_text(id) + " node=" + id_text(first) + " added=" + std::to_string(number) + " " +
         std::to_string(value.size()) + " bytes";
}

std::string describe_span(Bytes field, bool of_nodes) {
  StreamId first;
  StreamId last;
  if (!take_id(field, first) || (of_nodes && !take_id(field, last))) return " damaged";
  return of_nodes ? " " + id_text(first) + ".." + id_text(last) : " node=" + id_text(first);
}

std::string describe_group(Bytes name, Bytes from) {
  StreamGroup group;
  if (!take_id(from, group.last_id) || !take_signed(from, group.entries_read)) return " damaged";
  return " " + printable_bytes(name) + " last=" + id_text(group.last_id) +
         " read=" + std::to_string(group.entries_read);
}

std::string describe_consumer(Bytes group, Bytes from) {
  int64_t seen_ms = 0;
  if (!take_signed(from, seen_ms)) return " damaged";
  return " " + printable_bytes(group) + " " + printable_bytes(from) +
         " seen_ms=" + std::to_string(seen_ms);
}

std::string describe_pending(Bytes group, Bytes from) {
  std::string out = " " + printable_bytes(group);
  const bool put = !from.empty() && from[0] == 1;
  if (!from.empty()) from.remove_prefix(1);
  if (!put) return out + " done" + describe_ids(from);
  Bytes consumer;
  int64_t delivered_ms = 0;
  int64_t deliveries = 0;
  if (!take_bytes(from, consumer) || !take_signed(from, delivered_ms) ||
      !take_signed(from, deliveries)) {
    return out + " damaged";
  }
  return out + " " + printable_bytes(consumer) + " delivered_ms=" + std::to_string(delivered_ms) +
         " deliveries=" + std::to_string(deliveries) + describe_ids(from);
}

}  // namespace

std::string describe_stream_effect(const Effect& effect) {
  const std::string at =
      " db=" + std::to_string(effect.database) + " " + printable_bytes(effect.key);
  switch (effect.type) {
    case EffectType::kStreamHead:
      return "stream_head" + at + describe_head(effect.value);
    case EffectType::kStreamNode:
      return "stream_node" + at + describe_node(effect.field, effect.value);
    case EffectType::kStreamAdd:
      return "stream_add" + at + describe_add(effect.field, effect.value);
    case EffectType::kStreamDelete:
      return "stream_delete" + at + describe_span(effect.field, false) + describe_ids(effect.value);
    case EffectType::kStreamNodesGone:
      return "stream_nodes_gone" + at + describe_span(effect.field, true);
    case EffectType::kStreamGroup:
      return "stream_group" + at + describe_group(effect.field, effect.value);
    case EffectType::kStreamGroupGone:
      return "stream_group_gone" + at + " " + printable_bytes(effect.field);
    case EffectType::kStreamConsumer:
      return "stream_consumer" + at + describe_consumer(effect.field, effect.value);
    case EffectType::kStreamConsumerGone:
      return "stream_consumer_gone" + at + " " + printable_bytes(effect.field) + " " +
             printable_bytes(effect.value);
    case EffectType::kStreamPending:
      return "stream_pending" + at + describe_pending(effect.field, effect.value);
    default:
      return "unknown";
  }
}

}  // namespace sluice
