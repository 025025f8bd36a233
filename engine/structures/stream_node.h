// StreamNode: some consecutive entries of a stream in one block of memory.
//
// Redis trims approximately (`~`) by whole nodes, and clients see the lengths that this leaves. So
// a node ends exactly where a node of Redis 7.0 would: by the number of its entries, including
// deleted ones, and by the size of Redis's listpack. A node therefore counts its deleted entries,
// and keeps `listpack_bytes` beside its own size, which is smaller.
//
// Layout after the header: the names of the first entry's fields (their number, then each with its
// length), then the entries. An entry: its size, its id relative to the node's first id, twice the
// number of its fields plus one if their names are the node's; then the values, each after its
// length and, where the names are the entry's own, after its name. All numbers are varints. The
// same bytes are journaled (engine/keyspace/stream_records.h).
//
// Threads: one owner at a time (the shard's lock). Ownership: the code that makes a node destroys
// it. A change may move the node and invalidates all views into it.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>

#include "engine/base/bytes.h"

namespace sluice {

struct StreamId {
  uint64_t ms = 0;
  uint64_t seq = 0;

  auto operator<=>(const StreamId&) const = default;
  bool is_zero() const { return ms == 0 && seq == 0; }
  static constexpr StreamId max() { return {UINT64_MAX, UINT64_MAX}; }
  // Go to the next or previous id. At the end of the range they return false and the id wraps to
  // 0-0 or max().
  bool increment();
  bool decrement();
};

// A view of an entry in its node, valid until the node changes.
class StreamEntry {
 public:
  const StreamId& id() const { return id_; }
  uint64_t field_count() const { return field_count_; }
  // Whether its fields have other names than the node's.
  bool has_own_names() const { return own_names_; }
  // Its encoded bytes, preceded by their size.
  Bytes packed() const { return {begin_, static_cast<size_t>(end_ - begin_)}; }

  // Calls fn(name, value) for each field, in order.
  template <class Fn>
  void each_field(Fn fn) const {
    const char* name_at = names_;
    const char* at = fields_;
    for (uint64_t i = 0; i < field_count_; ++i) {
      // Own names alternate with the values.
      const Bytes name = take(own_names_ ? at : name_at);
      fn(name, take(at));
    }
  }

 private:
  friend class StreamNode;
  static uint64_t take_number(const char*& at) {
    uint64_t number = static_cast<uint8_t>(*at++);
    if (number < 0x80) return number;
    number &= 0x7f;
    for (int shift = 7;; shift += 7) {
      const auto byte = static_cast<uint8_t>(*at++);
      number |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return number;
    }
  }
  static Bytes take(const char*& at) {
    const size_t size = take_number(at);
    const Bytes bytes(at, size);
    at += size;
    return bytes;
  }

  StreamId id_;
  uint64_t field_count_ = 0;
  bool own_names_ = false;
  const char* names_ = nullptr;   // of the node
  const char* fields_ = nullptr;  // where they begin
  const char* begin_ = nullptr;
  const char* end_ = nullptr;
};

class StreamNode {
 public:
  // The limits of a node, named like Redis's directives; 0: no limit.
  struct Limits {
    uint64_t max_bytes;
    uint64_t max_entries;
  };

  // Makes an empty node for an entry with this id and these fields: names and values alternate.
  static StreamNode* make(const StreamId& first, std::span<const Bytes> words);
  static StreamNode* copy(const StreamNode& other);
  static void destroy(StreamNode* node);

  const StreamId& first_id() const { return first_; }
  // The id of the entry that was added last, even if it has been deleted.
  const StreamId& last_id() const { return last_; }
  uint32_t live() const { return live_; }
  uint32_t deleted() const { return deleted_; }
  void set_deleted(uint32_t deleted) { deleted_ = deleted; }
  size_t memory_bytes() const;
  // The size of Redis's listpack, without the two counters at its front, whose sizes vary.
  uint32_t listpack_bytes() const { return listpack_bytes_; }

  // Whether Redis would begin a new node for an entry with this many bytes of names and values.
  bool is_full_for(uint64_t entry_bytes, const Limits& limits) const;

  // Appends an entry. Returns the node, which may have moved.
  // REQUIRES: id > last_id(), or the node is empty and new.
  static StreamNode* append(StreamNode* node, const StreamId& id, std::span<const Bytes> words);
  // The encoded entry that append() has added. REQUIRES: no other change since.
  Bytes last_packed() const { return {data() + last_at_, static_cast<size_t>(used_ - last_at_)}; }
  // Frees memory reserved for further entries. Returns the node, which may have moved.
  static StreamNode* shrink_to_fit(StreamNode* node);
  // Removes an entry, which counts as deleted unless `forgotten`. Returns false if there is no such
  // entry.
  bool erase(const StreamId& id, bool forgotten = false);

  // For a walk over the entries, begin() .. end(): read() returns where the next entry begins.
  const char* begin() const { return data() + names_bytes_ + gap_; }
  const char* end() const { return data() + used_; }
  // Reads the entry at `at` and returns where the next one begins.
  const char* read(const char* at, StreamEntry& entry) const {
    entry.begin_ = at;
    const uint64_t size = StreamEntry::take_number(at);
    entry.end_ = at + size;
    const uint64_t ms = StreamEntry::take_number(at);
    const uint64_t seq = StreamEntry::take_number(at);
    entry.id_ = {first_.ms + ms, ms == 0 ? first_.seq + seq : seq};
    const uint64_t header = StreamEntry::take_number(at);
    entry.field_count_ = header >> 1;
    entry.own_names_ = (header & 1) == 0;
    entry.fields_ = at;
    entry.names_ = data();
    StreamEntry::take_number(entry.names_);
    return entry.end_;
  }
  // The first entry with this id or a later one, or null.
  const char* seek(const StreamId& id) const;
  // The entry with the highest id. REQUIRES: live() != 0.
  void read_last(StreamEntry& entry) const;

  // --- The journal's view ---
  Bytes names() const { return {data(), names_bytes_}; }
  Bytes entries() const { return {begin(), static_cast<size_t>(end() - begin())}; }

  // The content of a record of a node. Views into the record.
  struct Image {
    StreamId first;
    StreamId last;
    uint64_t live = 0;
    uint64_t deleted = 0;
    uint64_t listpack_bytes = 0;
    Bytes names;
    Bytes entries;
  };
  // Reads the id of an encoded entry. Returns false if it is damaged.
  static bool read_id(Bytes packed, const StreamId& first, StreamId& id);
  // Returns null if the image is not one of a node.
  static StreamNode* make(const Image& image);
  // Puts one encoded entry at the place of its id, replacing an entry with that id, and sets the
  // counters. Returns false if it is damaged. The node may have moved.
  static bool put(StreamNode*& node, Bytes packed, uint64_t deleted, uint64_t listpack_bytes);

 private:
  StreamNode() = default;
  static constexpr size_t kSmallestBytes = 192;

  char* data() { return reinterpret_cast<char*>(this + 1); }
  const char* data() const { return reinterpret_cast<const char*>(this + 1); }
  static StreamNode* allocate(size_t data_bytes);
  static StreamNode* reserve(StreamNode* node, size_t more);
  void close_gap();
  bool has_names_of(std::span<const Bytes> words) const;
  // Takes one whole entry off the front of `bytes`. If the entry uses the node's names, sets
  // `names` to the number that the node must have. Returns false if the bytes are damaged.
  static bool take_entry(Bytes& bytes, const StreamId& first, StreamId& id,
                         std::optional<uint64_t>& names);
  static bool count_names(Bytes names, uint64_t& count);

  StreamId first_;
  StreamId last_;
  uint32_t capacity_ = 0;  // of the data, like the other sizes
  uint32_t used_ = 0;
  uint32_t names_bytes_ = 0;
  uint32_t gap_ = 0;  // after the names: of erased entries that were in front
  uint32_t listpack_bytes_ = 0;
  uint32_t live_ = 0;
  uint32_t deleted_ = 0;
  uint32_t last_at_ = 0;         // where append() has put its entry
  mutable uint32_t sought_ = 0;  // what seek() found last; 0: nothing, or it may have moved
};

}  // namespace sluice
