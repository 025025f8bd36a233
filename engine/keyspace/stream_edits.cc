// Changes of streams. In Redis, adding and removing entries invalidates WATCHes, and changes of
// groups do not. So the former call touched(), and the latter only count the change.
#include "engine/keyspace/stream_edits.h"

#include "engine/keyspace/stream_records.h"

namespace sluice {

void StreamEdits::record(EffectType type, const StreamRecord& record) {
  unit_.record().stream_record(type, database_.index(), key_.key, record.field, record.value);
}

void StreamEdits::changed(EffectType type, const StreamRecord& change) {
  ++unit_.changes;
  if (unit_.recording) record(type, change);
}

// --- Entries ---

void StreamEdits::add(const StreamId& id, std::span<const Bytes> words) {
  const StreamNode* node = stream_.append(id, words);
  if (unit_.recording) {
    const StreamAddRecord added = encode_stream_add(stream_, *node);
    unit_.record().stream_record(EffectType::kStreamAdd, database_.index(), key_.key, added.field,
                                 added.value);
  }
  database_.signal(key_.key);
  database_.touched(key_.key);
}

bool StreamEdits::erase(const StreamId& id) {
  StreamNode* node = stream_.erase(id);
  if (node == nullptr) return false;
  if (node->live() == 0) {
    const StreamId first = node->first_id();
    stream_.remove_node(node);
    if (unit_.recording) {
      record(EffectType::kStreamNodesGone, encode_stream_nodes_gone(first, first));
    }
  } else if (unit_.recording) {
    record(EffectType::kStreamDelete, encode_stream_delete(*node, {&id, 1}));
  }
  if (id > stream_.max_deleted_id) {
    stream_.max_deleted_id = id;
    if (unit_.recording) record(EffectType::kStreamHead, encode_stream_head(stream_));
  }
  database_.touched(key_.key);
  return true;
}

uint64_t StreamEdits::trim(const StreamTrim& trim) {
  uint64_t gone = 0;
  StreamId first_gone;
  StreamId last_gone;
  bool nodes_gone = false;
  StreamNode* node = nullptr;
  for (;;) {
    node = stream_.node_from({});
    if (node == nullptr) break;
    if (trim.by == StreamTrim::By::kLength && stream_.length() <= trim.max_length) break;
    if (trim.limit != 0 && gone + node->live() > trim.limit) break;
    const bool whole = trim.by == StreamTrim::By::kLength
                           ? stream_.length() - node->live() >= trim.max_length
                           : node->last_id() < trim.min_id;
    if (!whole) break;
    gone += node->live();
    if (!nodes_gone) first_gone = node->first_id();
    last_gone = node->first_id();
    nodes_gone = true;
    stream_.remove_node(node);
    node = nullptr;
  }
  if (nodes_gone && unit_.recording) {
    record(EffectType::kStreamNodesGone, encode_stream_nodes_gone(first_gone, last_gone));
  }
  const bool within = trim.limit == 0 || node == nullptr || gone + node->live() <= trim.limit;
  if (node != nullptr && !trim.approximately && within) {
    const std::vector<StreamId> ids = stream_.trimmed_of(*node, trim);
    for (const StreamId& id : ids) stream_.erase_in(*node, id);
    gone += ids.size();
    if (!ids.empty() && unit_.recording) {
      record(EffectType::kStreamDelete, encode_stream_delete(*node, ids));
    }
  }
  if (gone != 0) database_.touched(key_.key);
  return gone;
}

void StreamEdits::set_head(const StreamId& last_id, const StreamId& max_deleted_id,
                           uint64_t entries_added) {
  stream_.last_id = last_id;
  stream_.max_deleted_id = max_deleted_id;
  stream_.entries_added = entries_added;
  // Empty nodes have ids that may be used again.
  if (stream_.length() == 0 && !stream_.nodes().empty()) {
    const StreamId first = stream_.nodes().front().value->first_id();
    const StreamId last = stream_.nodes().back().value->first_id();
    while (StreamNode* node = stream_.node_from({})) stream_.remove_node(node);
    changed(EffectType::kStreamNodesGone, encode_stream_nodes_gone(first, last));
  }
  changed(EffectType::kStreamHead, encode_stream_head(stream_));
}

// --- Groups ---

void StreamEdits::put_group(Bytes name, const StreamId& last_id, int64_t entries_read) {
  std::unique_ptr<StreamGroup>& group = stream_.groups[std::string(name)];
  if (group == nullptr) group = std::make_unique<StreamGroup>();
  group->last_id = last_id;
  group->entries_read = entries_read;
  changed(EffectType::kStreamGroup, encode_stream_group(name, *group));
}

bool StreamEdits::remove_group(Bytes name) {
  const auto found = stream_.groups.find(name);
  if (found == stream_.groups.end()) return false;
  stream_.groups.erase(found);
  changed(EffectType::kStreamGroupGone, {std::string(name), {}});
  // Blocked readers of the group get an error.
  database_.signal(key_.key);
  return true;
}

StreamConsumer* StreamEdits::see_consumer(Bytes group_name, Bytes name) {
  StreamGroup& group = *stream_.groups.find(group_name)->second;
  StreamConsumer* consumer = group.find_consumer(name);
  if (consumer != nullptr) {
    consumer->seen_ms = unit_.times.wall_ms;
    return consumer;
  }
  consumer = group.add_consumer(name, unit_.times.wall_ms);
  changed(EffectType::kStreamConsumer, encode_stream_consumer(group_name, *consumer));
  database_.notify(KeyEvent::kXGroupCreateConsumer, key_.key);
  return consumer;
}

void StreamEdits::remove_consumer(Bytes group_name, Bytes name) {
  stream_.groups.find(group_name)->second->remove_consumer(name);
  changed(EffectType::kStreamConsumerGone, {std::string(group_name), std::string(name)});
}

void StreamEdits::put_pending(Bytes group_name, StreamConsumer* consumer,
                              std::span<const StreamId> ids, int64_t delivered_ms,
                              int64_t deliveries) {
  StreamGroup& group = *stream_.groups.find(group_name)->second;
  for (const StreamId& id : ids) group.put_pending(id, consumer, delivered_ms, deliveries);
  ++unit_.changes;
  if (!unit_.recording) return;
  StreamPendingEncoder encoder(consumer->name, delivered_ms, deliveries);
  for (const StreamId& id : ids) encoder.add(id);
  unit_.record().stream_record(EffectType::kStreamPending, database_.index(), key_.key, group_name,
                               encoder.value());
}

uint64_t StreamEdits::acknowledge(Bytes group_name, std::span<const StreamId> ids) {
  StreamGroup& group = *stream_.groups.find(group_name)->second;
  uint64_t count = 0;
  StreamPendingEncoder encoder;
  for (const StreamId& id : ids) {
    if (!group.remove_pending(id)) continue;
    ++count;
    encoder.add(id);
  }
  if (count == 0) return 0;
  unit_.changes += count;
  if (unit_.recording) {
    unit_.record().stream_record(EffectType::kStreamPending, database_.index(), key_.key,
                                 group_name, encoder.value());
  }
  return count;
}

}  // namespace sluice
