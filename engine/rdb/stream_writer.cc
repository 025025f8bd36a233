// Encoding of streams.
#include "engine/base/varint.h"
#include "engine/rdb/format.h"
#include "engine/rdb/packed.h"
#include "engine/rdb/stream_value.h"
#include "engine/rdb/writer.h"

namespace sluice::rdb {

namespace {

void put_big_endian(std::string& to, uint64_t value) {
  for (int shift = 56; shift >= 0; shift -= 8) to += static_cast<char>(value >> shift);
}

void put_raw_id(std::string& to, const StreamId& id) {
  put_big_endian(to, id.ms);
  put_big_endian(to, id.seq);
}

void put_id(std::string& to, const StreamId& id) {
  put_length(to, id.ms);
  put_length(to, id.seq);
}

// An entry begins with its flags and its distance from the node's first id.
void put_entry_head(ListpackWriter& to, int64_t flags, const StreamId& first, const StreamId& id) {
  to.append(flags);
  to.append(static_cast<int64_t>(id.ms - first.ms));
  to.append(static_cast<int64_t>(id.seq - first.seq));
}

void put_deleted(ListpackWriter& to, const StreamId& first, const StreamId& id) {
  put_entry_head(to, kStreamEntryDeleted, first, id);
  to.append(int64_t{0});  // fields
  to.append(int64_t{4});  // elements before this one
}

void put_entry(ListpackWriter& to, const StreamId& first, const StreamEntry& entry) {
  const bool own_names = entry.has_own_names();
  const auto fields = static_cast<int64_t>(entry.field_count());
  put_entry_head(to, own_names ? 0 : kStreamEntrySameFields, first, entry.id());
  if (own_names) to.append(fields);
  entry.each_field([&](Bytes name, Bytes value) {
    if (own_names) to.append(name);
    to.append(value);
  });
  to.append(own_names ? 2 * fields + 4 : fields + 3);
}

void put_node(std::string& to, const StreamNode& node) {
  const StreamId& first = node.first_id();
  put_length(to, 2 * sizeof(uint64_t));
  put_raw_id(to, first);
  ListpackWriter listpack;
  listpack.append(int64_t{node.live()});
  listpack.append(int64_t{node.deleted()});
  Bytes names = node.names();
  uint64_t count = 0;
  take_varint(names, count);
  listpack.append(static_cast<int64_t>(count));
  for (Bytes name; count != 0; --count) {
    take_bytes(names, name);
    listpack.append(name);
  }
  listpack.append(int64_t{0});  // the end of the names
  // The places of deleted entries are unknown, except whether the last entry is deleted: trimming
  // by ids compares the node's last id.
  uint64_t deleted = node.deleted();
  StreamEntry entry;
  const bool last_is_live =
      node.live() != 0 && (node.read_last(entry), entry.id() == node.last_id());
  if (!last_is_live && deleted != 0) --deleted;
  for (; deleted != 0; --deleted) put_deleted(listpack, first, first);
  for (const char* at = node.begin(); at != node.end();) {
    at = node.read(at, entry);
    put_entry(listpack, first, entry);
  }
  if (!last_is_live && node.deleted() != 0) put_deleted(listpack, first, node.last_id());
  put_string(to, listpack.take());
}

void put_group(std::string& to, const StreamGroup& group) {
  put_id(to, group.last_id);
  put_length(to, static_cast<uint64_t>(group.entries_read));
  put_length(to, group.pending().size());
  for (auto at = group.pending().begin(); at.valid(); at.next()) {
    put_raw_id(to, {at.major(), at.minor()});
    put_number(to, static_cast<uint64_t>(at.value()->delivered_ms), sizeof(int64_t));
    put_length(to, static_cast<uint64_t>(at.value()->deliveries));
  }
  put_length(to, group.consumers().size());
  for (const auto& [name, consumer] : group.consumers()) {
    put_string(to, name);
    put_number(to, static_cast<uint64_t>(consumer->seen_ms), sizeof(int64_t));
    put_length(to, consumer->pending.size());
    for (auto at = consumer->pending.begin(); at.valid(); at.next()) {
      put_raw_id(to, {at.major(), at.minor()});
    }
  }
}

}  // namespace

void put_stream(std::string& to, const Stream& stream) {
  to += static_cast<char>(kStreamListpacks2);
  put_length(to, stream.nodes().size());
  for (auto at = stream.nodes().begin(); at.valid(); at.next()) put_node(to, *at.value());
  put_length(to, stream.length());
  put_id(to, stream.last_id);
  put_id(to, stream.first_entry_id());
  put_id(to, stream.max_deleted_id);
  put_length(to, stream.entries_added);
  put_length(to, stream.groups.size());
  for (const auto& [name, group] : stream.groups) {
    put_string(to, name);
    put_group(to, *group);
  }
}

}  // namespace sluice::rdb
