// Database's functions for streams. In Redis, adding and removing entries invalidates WATCHes, and
// changes of groups do not. So the former call touched(), and the latter only count the change.
#include "engine/keyspace/database.h"
#include "engine/keyspace/stream_records.h"

namespace sluice {

void Database::record_stream(const KeyRef& key, EffectType type, const StreamRecord& record) {
  unit_->record().stream_record(type, index_, key.key, record.field, record.value);
}

void Database::stream_changed(const KeyRef& key, EffectType type, const StreamRecord& record) {
  ++unit_->changes;
  if (unit_->recording) record_stream(key, type, record);
}

// --- Entries ---

void Database::stream_add(const KeyRef& key, Entry* entry, const StreamId& id,
                          std::span<const Bytes> words) {
  Stream& stream = entry->object<Stream>();
  const StreamNode* node = stream.append(id, words);
  if (unit_->recording) {
    const StreamAddRecord record = encode_stream_add(stream, *node);
    unit_->record().stream_record(EffectType::kStreamAdd, index_, key.key, record.field,
                                  record.value);
  }
  signal(key.key);
  touched(key.key);
}

bool Database::stream_delete(const KeyRef& key, Entry* entry, const StreamId& id) {
  Stream& stream = entry->object<Stream>();
  StreamNode* node = stream.erase(id);
  if (node == nullptr) return false;
  if (node->live() == 0) {
    const StreamId first = node->first_id();
    stream.remove_node(node);
    if (unit_->recording) {
      record_stream(key, EffectType::kStreamNodesGone, encode_stream_nodes_gone(first, first));
    }
  } else if (unit_->recording) {
    record_stream(key, EffectType::kStreamDelete, encode_stream_delete(*node, {&id, 1}));
  }
  if (id > stream.max_deleted_id) {
    stream.max_deleted_id = id;
    if (unit_->recording) {
      record_stream(key, EffectType::kStreamHead, encode_stream_head(stream));
    }
  }
  touched(key.key);
  return true;
}

uint64_t Database::stream_trim(const KeyRef& key, Entry* entry, const StreamTrim& trim) {
  Stream& stream = entry->object<Stream>();
  uint64_t gone = 0;
  StreamId first_gone;
  StreamId last_gone;
  bool nodes_gone = false;
  StreamNode* node = nullptr;
  for (;;) {
    node = stream.node_from({});
    if (node == nullptr) break;
    if (trim.by == StreamTrim::By::kLength && stream.length() <= trim.max_length) break;
    if (trim.limit != 0 && gone + node->live() > trim.limit) break;
    const bool whole = trim.by == StreamTrim::By::kLength
                           ? stream.length() - node->live() >= trim.max_length
                           : node->last_id() < trim.min_id;
    if (!whole) break;
    gone += node->live();
    if (!nodes_gone) first_gone = node->first_id();
    last_gone = node->first_id();
    nodes_gone = true;
    stream.remove_node(node);
    node = nullptr;
  }
  if (nodes_gone && unit_->recording) {
    record_stream(key, EffectType::kStreamNodesGone,
                  encode_stream_nodes_gone(first_gone, last_gone));
  }
  const bool within = trim.limit == 0 || node == nullptr || gone + node->live() <= trim.limit;
  if (node != nullptr && !trim.approximately && within) {
    const std::vector<StreamId> ids = stream.trimmed_of(*node, trim);
    for (const StreamId& id : ids) stream.erase_in(*node, id);
    gone += ids.size();
    if (!ids.empty() && unit_->recording) {
      record_stream(key, EffectType::kStreamDelete, encode_stream_delete(*node, ids));
    }
  }
  if (gone != 0) touched(key.key);
  return gone;
}

void Database::stream_set_head(const KeyRef& key, Entry* entry, const StreamId& last_id,
                               const StreamId& max_deleted_id, uint64_t entries_added) {
  Stream& stream = entry->object<Stream>();
  stream.last_id = last_id;
  stream.max_deleted_id = max_deleted_id;
  stream.entries_added = entries_added;
  // Empty nodes have ids that may be used again.
  if (stream.length() == 0 && !stream.nodes().empty()) {
    const StreamId first = stream.nodes().front().value->first_id();
    const StreamId last = stream.nodes().back().value->first_id();
    while (StreamNode* node = stream.node_from({})) stream.remove_node(node);
    stream_changed(key, EffectType::kStreamNodesGone, encode_stream_nodes_gone(first, last));
  }
  stream_changed(key, EffectType::kStreamHead, encode_stream_head(stream));
}

// --- Groups ---

void Database::stream_put_group(const KeyRef& key, Entry* entry, Bytes name,
                                const StreamId& last_id, int64_t entries_read) {
  Stream& stream = entry->object<Stream>();
  std::unique_ptr<StreamGroup>& group = stream.groups[std::string(name)];
  if (group == nullptr) group = std::make_unique<StreamGroup>();
  group->last_id = last_id;
  group->entries_read = entries_read;
  stream_changed(key, EffectType::kStreamGroup, encode_stream_group(name, *group));
}

bool Database::stream_remove_group(const KeyRef& key, Entry* entry, Bytes name) {
  Stream& stream = entry->object<Stream>();
  const auto found = stream.groups.find(name);
  if (found == stream.groups.end()) return false;
  stream.groups.erase(found);
  stream_changed(key, EffectType::kStreamGroupGone, {std::string(name), {}});
  // Blocked readers of the group get an error.
  signal(key.key);
  return true;
}

StreamConsumer* Database::stream_see_consumer(const KeyRef& key, Entry* entry, Bytes group_name,
                                              Bytes name) {
  StreamGroup& group = *entry->object<Stream>().groups.find(group_name)->second;
  StreamConsumer* consumer = group.find_consumer(name);
  if (consumer != nullptr) {
    consumer->seen_ms = unit_->times.wall_ms;
    return consumer;
  }
  consumer = group.add_consumer(name, unit_->times.wall_ms);
  stream_changed(key, EffectType::kStreamConsumer, encode_stream_consumer(group_name, *consumer));
  notify(KeyEvent::kXGroupCreateConsumer, key.key);
  return consumer;
}

void Database::stream_remove_consumer(const KeyRef& key, Entry* entry, Bytes group_name,
                                      Bytes name) {
  entry->object<Stream>().groups.find(group_name)->second->remove_consumer(name);
  stream_changed(key, EffectType::kStreamConsumerGone,
                 {std::string(group_name), std::string(name)});
}

void Database::stream_put_pending(const KeyRef& key, Entry* entry, Bytes group_name,
                                  StreamConsumer* consumer, std::span<const StreamId> ids,
                                  int64_t delivered_ms, int64_t deliveries) {
  StreamGroup& group = *entry->object<Stream>().groups.find(group_name)->second;
  for (const StreamId& id : ids) group.put_pending(id, consumer, delivered_ms, deliveries);
  ++unit_->changes;
  if (!unit_->recording) return;
  StreamPendingEncoder encoder(consumer->name, delivered_ms, deliveries);
  for (const StreamId& id : ids) encoder.add(id);
  unit_->record().stream_record(EffectType::kStreamPending, index_, key.key, group_name,
                                encoder.value());
}

uint64_t Database::stream_acknowledge(const KeyRef& key, Entry* entry, Bytes group_name,
                                      std::span<const StreamId> ids) {
  StreamGroup& group = *entry->object<Stream>().groups.find(group_name)->second;
  uint64_t count = 0;
  StreamPendingEncoder encoder;
  for (const StreamId& id : ids) {
    if (!group.remove_pending(id)) continue;
    ++count;
    encoder.add(id);
  }
  if (count == 0) return 0;
  unit_->changes += count;
  if (unit_->recording) {
    unit_->record().stream_record(EffectType::kStreamPending, index_, key.key, group_name,
                                  encoder.value());
  }
  return count;
}

// --- Whole streams ---

void Database::record_whole_stream(const KeyRef& key, const Stream& stream) {
  if (!unit_->recording) return;
  StreamCursor cursor;
  const EmitStreamRecord emit = [&](EffectType type, Bytes field, Bytes value) {
    unit_->record().stream_record(type, index_, key.key, field, value);
  };
  while (walk_stream(stream, cursor, SIZE_MAX, emit)) {
  }
}

bool Database::apply_stream(const KeyRef& key, const Effect& effect) {
  return apply_stream_effect(replay_collection(key, Type::kStream)->object<Stream>(), effect);
}

}  // namespace sluice
