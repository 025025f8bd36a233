// Decoding of streams. Anything that Redis never writes is refused: ids out of order, counts that
// do not add up, pending entries without a consumer.
#include <algorithm>

#include "engine/base/varint.h"
#include "engine/rdb/format.h"
#include "engine/rdb/packed.h"
#include "engine/rdb/reader.h"
#include "engine/rdb/stream_value.h"

namespace sluice::rdb {

namespace {

constexpr size_t kRawIdBytes = 16;
constexpr size_t kListpackHeaderBytes = 6;

bool read_big_endian(Reader& from, uint64_t& value) {
  if (!from.number(sizeof(value), value)) return false;
  value = __builtin_bswap64(value);
  return true;
}

bool read_raw_id(Reader& from, StreamId& id) {
  return read_big_endian(from, id.ms) && read_big_endian(from, id.seq);
}

bool read_id(Reader& from, StreamId& id) { return from.length(id.ms) && from.length(id.seq); }

bool read_time(Reader& from, int64_t& time_ms) {
  uint64_t raw = 0;
  if (!from.number(sizeof(raw), raw)) return false;
  time_ms = static_cast<int64_t>(raw);
  return true;
}

// Builds the bytes of a StreamNode from the elements of a listpack.
class NodeReader {
 public:
  NodeReader(const StreamId& first, Bytes packed) : from_(packed), packed_bytes_(packed.size()) {
    image_.first = first;
    image_.last = first;
  }

  // Returns null for damage.
  StreamNode* read() {
    if (!read_head()) return nullptr;
    uint64_t live = 0;
    uint64_t deleted = 0;
    for (int64_t flags = 0; from_.next(flags);) {
      const bool is_deleted = (flags & kStreamEntryDeleted) != 0;
      if (!read_entry(flags, is_deleted)) return nullptr;
      ++(is_deleted ? deleted : live);
    }
    if (!from_.is_whole() || live != image_.live || deleted != image_.deleted) return nullptr;
    image_.names = names_;
    image_.entries = entries_;
    return StreamNode::make(image_);
  }

 private:
  bool read_count(uint64_t& count) {
    int64_t number = 0;
    if (!from_.next(number) || number < 0) return false;
    count = static_cast<uint64_t>(number);
    return true;
  }

  // The counters and the names of the first entry's fields.
  bool read_head() {
    if (!read_count(image_.live) || !read_count(image_.deleted)) return false;
    image_.listpack_bytes = packed_bytes_ - (from_.position() - kListpackHeaderBytes);
    if (!read_count(name_count_)) return false;
    put_varint(names_, name_count_);
    for (uint64_t i = 0; i < name_count_; ++i) {
      Bytes name;
      if (!from_.next(name)) return false;
      put_bytes(names_, name);
    }
    int64_t end = 0;
    return from_.next(end) && end == 0;
  }

  bool read_entry(int64_t flags, bool is_deleted) {
    int64_t ms = 0;
    int64_t seq = 0;
    if (!from_.next(ms) || !from_.next(seq)) return false;
    const StreamId& first = image_.first;
    const StreamId id{first.ms + static_cast<uint64_t>(ms), first.seq + static_cast<uint64_t>(seq)};
    if (id < first) return false;
    // Deleted entries may be out of order: XSETID can go back before them.
    image_.last = std::max(image_.last, id);
    const bool same_names = (flags & kStreamEntrySameFields) != 0;
    uint64_t fields = name_count_;
    if (!same_names && !read_count(fields)) return false;
    entry_.clear();
    put_varint(entry_, id.ms - first.ms);
    put_varint(entry_, id.ms == first.ms ? id.seq - first.seq : id.seq);
    put_varint(entry_, fields << 1 | (same_names ? 1 : 0));
    // Each takes at least a byte, and twice the number must not overflow.
    if (fields > packed_bytes_) return false;
    const uint64_t texts = same_names ? fields : 2 * fields;
    for (uint64_t i = 0; i < texts; ++i) {
      Bytes text;
      if (!from_.next(text)) return false;
      put_bytes(entry_, text);
    }
    int64_t elements = 0;
    if (!from_.next(elements)) return false;
    if (static_cast<uint64_t>(elements) != texts + (same_names ? 3 : 4)) return false;
    if (!is_deleted) put_bytes(entries_, entry_);
    return true;
  }

  ListpackReader from_;
  size_t packed_bytes_;
  uint64_t name_count_ = 0;
  std::string names_;
  std::string entries_;
  std::string entry_;
  StreamNode::Image image_;
};

StreamId last_entry(const StreamNode& node) {
  StreamEntry entry;
  if (node.live() == 0) return node.first_id();
  node.read_last(entry);
  return entry.id();
}

bool read_nodes(Reader& from, Stream& stream) {
  uint64_t nodes = 0;
  if (!from.count(kRawIdBytes, nodes)) return false;
  for (; nodes != 0; --nodes) {
    Bytes raw;
    Bytes packed;
    StreamId first;
    if (!from.string(raw) || raw.size() != kRawIdBytes) return false;
    Reader id(raw, kRawIdBytes);
    if (!read_raw_id(id, first) || !from.string(packed)) return false;
    if (!stream.nodes().empty() && first <= last_entry(*stream.nodes().back().value)) return false;
    StreamNode* node = NodeReader(first, packed).read();
    if (node == nullptr) return false;
    stream.put_node(node);
  }
  return true;
}

bool read_head(uint8_t type, Reader& from, Stream& stream) {
  uint64_t length = 0;
  if (!from.length(length) || length != stream.length() || !read_id(from, stream.last_id)) {
    return false;
  }
  if (stream.last_entry_id() > stream.last_id) return false;
  // After XSETID to an earlier id Redis may still have later nodes, of deleted entries only.
  while (!stream.nodes().empty() && stream.nodes().back().value->first_id() > stream.last_id) {
    stream.remove_node(stream.nodes().back().value);
  }
  stream.entries_added = length;
  if (type == kStreamListpacks) return true;
  StreamId first;  // computed from the nodes
  return read_id(from, first) && read_id(from, stream.max_deleted_id) &&
         from.length(stream.entries_added);
}

// A pending entry of a group, in the order of ids, until the lists of the consumers say which one
// it belongs to.
struct Delivery {
  StreamId id;
  int64_t delivered_ms = 0;
  uint64_t deliveries = 0;
  bool has_consumer = false;
};

bool read_deliveries(Reader& from, std::vector<Delivery>& deliveries) {
  uint64_t count = 0;
  if (!from.count(kRawIdBytes + sizeof(int64_t) + 1, count)) return false;
  for (; count != 0; --count) {
    Delivery delivery;
    if (!read_raw_id(from, delivery.id) || !read_time(from, delivery.delivered_ms) ||
        !from.length(delivery.deliveries)) {
      return false;
    }
    if (!deliveries.empty() && delivery.id <= deliveries.back().id) return false;
    deliveries.push_back(delivery);
  }
  return true;
}

bool read_consumer(Reader& from, StreamGroup& group, std::vector<Delivery>& deliveries) {
  Bytes name;
  if (!from.string(name) || group.find_consumer(name) != nullptr) return false;
  StreamConsumer* consumer = group.add_consumer(name, 0);
  uint64_t count = 0;
  if (!read_time(from, consumer->seen_ms) || !from.count(kRawIdBytes, count)) return false;
  for (; count != 0; --count) {
    StreamId id;
    if (!read_raw_id(from, id)) return false;
    const auto found = std::lower_bound(
        deliveries.begin(), deliveries.end(), id,
        [](const Delivery& delivery, const StreamId& sought) { return delivery.id < sought; });
    if (found == deliveries.end() || found->id != id || found->has_consumer) return false;
    found->has_consumer = true;
    group.put_pending(id, consumer, found->delivered_ms, static_cast<int64_t>(found->deliveries));
  }
  return true;
}

bool read_group(uint8_t type, Reader& from, Stream& stream) {
  Bytes name;
  if (!from.string(name)) return false;
  const auto [place, is_new] = stream.groups.emplace(name, std::make_unique<StreamGroup>());
  if (!is_new) return false;
  StreamGroup& group = *place->second;
  uint64_t read = 0;
  if (!read_id(from, group.last_id)) return false;
  if (type != kStreamListpacks && !from.length(read)) return false;
  group.entries_read =
      type == kStreamListpacks ? stream.reads_up_to(group.last_id) : static_cast<int64_t>(read);
  std::vector<Delivery> deliveries;
  uint64_t consumers = 0;
  if (!read_deliveries(from, deliveries)) return false;
  if (!from.count(1 + sizeof(int64_t) + 1, consumers)) return false;
  for (; consumers != 0; --consumers) {
    if (!read_consumer(from, group, deliveries)) return false;
  }
  return group.pending().size() == deliveries.size();
}

}  // namespace

bool read_stream(uint8_t type, Reader& from, Stream& stream) {
  uint64_t groups = 0;
  if (!read_nodes(from, stream) || !read_head(type, from, stream)) return false;
  if (!from.count(1 + 2 + 1 + 1, groups)) return false;
  for (; groups != 0; --groups) {
    if (!read_group(type, from, stream)) return false;
  }
  return true;
}

}  // namespace sluice::rdb
