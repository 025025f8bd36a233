// StreamGroup: a consumer group of a stream: its read position, its consumers, and their entries
// that have been delivered and not acknowledged.
//
// Threads: one owner at a time (the shard's lock). Ownership: a group owns its consumers and
// pending entries. Each pending entry is in two orders: the group's and its consumer's.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "engine/base/bytes.h"
#include "engine/structures/ordered_index.h"
#include "engine/structures/stream_node.h"

namespace sluice {

struct StreamConsumer;

// An entry that was delivered and is not acknowledged. Its id is its key in both orders.
struct StreamPending {
  StreamConsumer* consumer = nullptr;
  int64_t delivered_ms = 0;  // unix time of the last delivery
  int64_t deliveries = 0;
};

using StreamPendingOrder = OrderedIndex<StreamPending*>;  // (ms, seq)

struct StreamConsumer {
  std::string name;
  int64_t seen_ms = 0;  // unix time of its last read or claim
  StreamPendingOrder pending;
};

class StreamGroup {
 public:
  static constexpr int64_t kUnknownReads = -1;

  StreamGroup() = default;
  ~StreamGroup();
  StreamGroup(const StreamGroup&) = delete;
  StreamGroup& operator=(const StreamGroup&) = delete;
  std::unique_ptr<StreamGroup> clone() const;

  // The last delivered entry, and the number of entries delivered since the stream's beginning.
  StreamId last_id;
  int64_t entries_read = kUnknownReads;

  using Consumers = std::map<std::string, std::unique_ptr<StreamConsumer>, std::less<>>;
  const Consumers& consumers() const { return consumers_; }
  const StreamPendingOrder& pending() const { return pending_; }

  StreamConsumer* find_consumer(Bytes name) const;
  // REQUIRES: no consumer has this name.
  StreamConsumer* add_consumer(Bytes name, int64_t seen_ms);
  // Removes the consumer and its pending entries.
  void remove_consumer(Bytes name);

  StreamPending* find_pending(const StreamId& id) const;
  // Assigns the entry to the consumer, even if another one had it before.
  void put_pending(const StreamId& id, StreamConsumer* consumer, int64_t delivered_ms,
                   int64_t deliveries);
  // Returns false if the entry is not pending.
  bool remove_pending(const StreamId& id);

  size_t memory_bytes() const;

 private:
  StreamPendingOrder pending_;
  Consumers consumers_;
};

}  // namespace sluice
