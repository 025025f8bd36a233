#include "engine/structures/stream_group.h"

namespace sluice {

namespace {

void take_out(StreamPendingOrder& order, const StreamId& id, StreamPending* pending) {
  const bool was_there = order.erase(id.ms, id.seq, pending);
  CHECK(was_there);
}

}  // namespace

StreamGroup::~StreamGroup() {
  for (auto at = pending_.begin(); at.valid(); at.next()) delete at.value();
}

std::unique_ptr<StreamGroup> StreamGroup::clone() const {
  auto made = std::make_unique<StreamGroup>();
  made->last_id = last_id;
  made->entries_read = entries_read;
  for (const auto& [name, consumer] : consumers_) {
    StreamConsumer* copied = made->add_consumer(name, consumer->seen_ms);
    for (auto at = consumer->pending.begin(); at.valid(); at.next()) {
      const StreamPending* pending = at.value();
      made->put_pending({at.major(), at.minor()}, copied, pending->delivered_ms,
                        pending->deliveries);
    }
  }
  return made;
}

StreamConsumer* StreamGroup::find_consumer(Bytes name) const {
  const auto found = consumers_.find(name);
  return found == consumers_.end() ? nullptr : found->second.get();
}

StreamConsumer* StreamGroup::add_consumer(Bytes name, int64_t seen_ms) {
  auto made = std::make_unique<StreamConsumer>();
  made->name = name;
  made->seen_ms = seen_ms;
  StreamConsumer* consumer = made.get();
  const bool is_new = consumers_.emplace(consumer->name, std::move(made)).second;
  CHECK(is_new);
  return consumer;
}

void StreamGroup::remove_consumer(Bytes name) {
  const auto found = consumers_.find(name);
  if (found == consumers_.end()) return;
  for (auto at = found->second->pending.begin(); at.valid(); at.next()) {
    take_out(pending_, {at.major(), at.minor()}, at.value());
    delete at.value();
  }
  consumers_.erase(found);
}

StreamPending* StreamGroup::find_pending(const StreamId& id) const {
  const auto at = pending_.lower_bound(id.ms, id.seq);
  const bool found = at.valid() && at.major() == id.ms && at.minor() == id.seq;
  return found ? at.value() : nullptr;
}

void StreamGroup::put_pending(const StreamId& id, StreamConsumer* consumer, int64_t delivered_ms,
                              int64_t deliveries) {
  // A first delivery is mostly after all pending entries.
  const bool is_last =
      pending_.empty() || StreamId{pending_.back().major, pending_.back().minor} < id;
  StreamPending* pending = is_last ? nullptr : find_pending(id);
  if (pending == nullptr) {
    pending = new StreamPending;
    pending_.insert(id.ms, id.seq, pending);
  }
  if (pending->consumer != consumer) {
    if (pending->consumer != nullptr) take_out(pending->consumer->pending, id, pending);
    pending->consumer = consumer;
    consumer->pending.insert(id.ms, id.seq, pending);
  }
  pending->delivered_ms = delivered_ms;
  pending->deliveries = deliveries;
}

bool StreamGroup::remove_pending(const StreamId& id) {
  StreamPending* pending = find_pending(id);
  if (pending == nullptr) return false;
  take_out(pending_, id, pending);
  take_out(pending->consumer->pending, id, pending);
  delete pending;
  return true;
}

size_t StreamGroup::memory_bytes() const {
  size_t bytes = sizeof(StreamGroup) + pending_.memory_bytes() + pending_.size() * 32;
  for (const auto& [name, consumer] : consumers_) {
    bytes += sizeof(StreamConsumer) + 2 * name.size() + 64 + consumer->pending.memory_bytes();
  }
  return bytes;
}

}  // namespace sluice
