// How a stream is journaled, checkpointed, replayed and copied.
//
// Records (engine/unit/effects.h has the numbers; integers are varints, signed ones zigzag, text
// with a varint length unless it ends the value; an id is two integers):
//   kStreamHead          value = last id, highest deleted id, entries ever added
//   kStreamNode          field = first id; value = last id, number of entries and of deleted ones,
//                        listpack bytes, size of the names, names, entries: a whole node
//   kStreamAdd           field = first id of its node, then number of deleted entries there and
//                        listpack bytes (both after it), entries ever added, size of the names;
//                        value = names if it is the node's first entry, the encoded entry. Its id
//                        becomes the stream's last one.
//   kStreamDelete        field = first id of the node, number of deleted entries there; value = ids
//   kStreamNodesGone     field = first id of the first and of the last removed node
//   kStreamGroup         field = name; value = last delivered id, entries read (signed)
//   kStreamGroupGone     field = name
//   kStreamConsumer      field = group; value = seen_ms (signed), name
//   kStreamConsumerGone  field = group; value = name: with its pending entries
//   kStreamPending       field = group; value = 0, ids: no longer pending; or 1, consumer,
//                        delivered_ms and deliveries (signed), ids: pending now
// Lists of ids extend to the end of the value, each id relative to the one before: the difference
// of the milliseconds (signed), then that of the sequence (signed) if it is 0, else the sequence.
//
// Each record holds whole values (effects.h). A record that changes or removes a node, a group or
// an entry that does not exist is skipped: it was removed later. The bytes of a node and of an
// entry are those of engine/structures/stream_node.h.
#pragma once

#include <functional>
#include <string>

#include "engine/structures/stream.h"
#include "engine/unit/effects.h"

namespace sluice {

// `field` and `value` of Effect.
struct StreamRecord {
  std::string field;
  std::string value;
};

StreamRecord encode_stream_head(const Stream& stream);
StreamRecord encode_stream_node(const StreamNode& node);
// The record of the node's last entry, which has just been added; `value` is in the node.
struct StreamAddRecord {
  std::string field;
  Bytes value;
};
StreamAddRecord encode_stream_add(const Stream& stream, const StreamNode& node);
StreamRecord encode_stream_delete(const StreamNode& node, std::span<const StreamId> ids);
StreamRecord encode_stream_nodes_gone(const StreamId& first, const StreamId& last);
StreamRecord encode_stream_group(Bytes name, const StreamGroup& group);
StreamRecord encode_stream_consumer(Bytes group, const StreamConsumer& consumer);

// The value of kStreamPending, built id by id.
class StreamPendingEncoder {
 public:
  // For ids that are no longer pending.
  StreamPendingEncoder();
  // For ids that are pending for the consumer.
  StreamPendingEncoder(Bytes consumer, int64_t delivered_ms, int64_t deliveries);
  void add(const StreamId& id);
  bool empty() const { return count_ == 0; }
  const std::string& value() const { return value_; }

 private:
  std::string value_;
  StreamId previous_;
  size_t count_ = 0;
};

// Applies a decoded effect of type kStreamHead .. kStreamPending. Returns false if it is damaged.
bool apply_stream_effect(Stream& stream, const Effect& effect);

// The position of a walk over a stream, for checkpoints, RENAME and copies.
struct StreamCursor {
  enum class Part : uint8_t { kHead, kNodes, kGroups, kConsumers, kPending, kDone };
  Part part = Part::kHead;
  StreamId next_node;
  std::string group = {};  // kConsumers, kPending: the current one; kGroups: the last one
  bool any_group = false;
  std::string consumer = {};  // kConsumers: the last one
  bool any_consumer = false;
  StreamId next_pending;
};
// Emits records of the next parts of the stream by `emit(type, field, value)`, about `limit`
// elements at most, and moves the cursor. Returns false at the end.
using EmitStreamRecord = std::function<void(EffectType type, Bytes field, Bytes value)>;
bool walk_stream(const Stream& stream, StreamCursor& cursor, size_t limit,
                 const EmitStreamRecord& emit);

// One line about a record of a stream, for people (sluice-journal).
std::string describe_stream_effect(const Effect& effect);

}  // namespace sluice
