// The values of keys: hash, set, sorted set and list. (Streams: engine/structures/stream.h, queues:
// engine/queue/queue.h.)
//
// Each has one representation at every size. Where clients can see Redis's small encodings (the
// order of HGETALL or of a set of integers, OBJECT ENCODING), a flag follows Redis's rule, and
// readers sort accordingly. Nodes are single allocations that hold their bytes. All of this is
// plain data of one shard, guarded by the shard's lock, and changed only by Database
// (engine/keyspace/database.h).
#pragma once

#include <cstdint>

#include "engine/base/bytes.h"
#include "engine/base/hash.h"
#include "engine/keyspace/entry.h"
#include "engine/structures/ordered_index.h"
#include "engine/structures/packed_list.h"
#include "engine/structures/split_map.h"

namespace sluice {

// A field of a hash with its value.
class Field {
 public:
  static Field* make(Bytes name, Bytes value);
  static void destroy(Field* field);
  // Overwrites the value if the new one is of the same length. Returns false if a new node is
  // needed.
  bool overwrite(Bytes value);
  Bytes name() const { return {data(), name_size_}; }
  Bytes value() const { return {data() + name_size_, value_size_}; }

 private:
  char* data() { return reinterpret_cast<char*>(this + 1); }
  const char* data() const { return reinterpret_cast<const char*>(this + 1); }
  uint32_t name_size_;
  uint32_t value_size_;
};

// A member of a set.
class Member {
 public:
  static Member* make(Bytes bytes);
  static void destroy(Member* member);
  Bytes bytes() const { return {reinterpret_cast<const char*>(this + 1), size_}; }

 private:
  uint32_t size_;
};

// A member of a sorted set with its score.
class ScoredMember {
 public:
  static ScoredMember* make(Bytes bytes, double score);
  static void destroy(ScoredMember* member);
  Bytes bytes() const { return {reinterpret_cast<const char*>(this) + kHeaderBytes, size_}; }
  double score() const { return score_; }
  void set_score(double score) { score_ = score; }

 private:
  static constexpr size_t kHeaderBytes = sizeof(double) + sizeof(uint32_t);
  double score_;
  uint32_t size_;
};

struct FieldTraits {
  // The greatest listpack in Redis, whose order HGETALL shows.
  static constexpr size_t kMaxOrdered = 512;
  static Bytes key(const Field* field) { return field->name(); }
  static uint64_t hash(Bytes bytes) { return hash_bytes(bytes); }
};
struct MemberTraits {
  static constexpr size_t kMaxOrdered = 128;
  static Bytes key(const Member* member) { return member->bytes(); }
  static uint64_t hash(Bytes bytes) { return hash_bytes(bytes); }
};
struct ScoredMemberTraits {
  static constexpr size_t kMaxOrdered = 128;
  static Bytes key(const ScoredMember* member) { return member->bytes(); }
  static uint64_t hash(Bytes bytes) { return hash_bytes(bytes); }
};

// Equal scores are ordered by the members' bytes: the first eight are in the index's key; this
// compares the rest.
struct MemberOrder {
  bool operator()(const ScoredMember* a, const ScoredMember* b) const {
    return a->bytes() < b->bytes();
  }
};

struct Hash {
  SplitMap<Field, FieldTraits> fields;
  // Redis would hold it as a listpack: it is small and replied in order of insertion.
  bool listpack = true;
  ~Hash();
};

struct Set {
  SplitMap<Member, MemberTraits> members;
  // Redis would hold it as an intset: it has only integers, replied in ascending order.
  bool intset = true;
  ~Set();
};

struct SortedSet {
  using Index = OrderedIndex<ScoredMember*, MemberOrder>;
  SplitMap<ScoredMember, ScoredMemberTraits> members;
  Index order;
  bool listpack = true;
  ~SortedSet();

  static uint64_t major(double score) { return order_preserving(score); }
  // The first eight bytes, most significant first, so that comparing numbers compares the bytes.
  static uint64_t minor(Bytes member);
};

struct List {
  PackedList items;
  // The absolute index of the first item. Effects name items by absolute index, which changes only
  // at the ends, so replaying one twice changes nothing.
  int64_t first_index = 0;
};

// Makes an empty collection of this type; destroys one.
void* make_collection(Type type);
void destroy_collection(Type type, void* object);
// The number of elements of a collection; 0 for a string.
size_t collection_size(const Entry& entry);
// Bytes of a collection with all its elements, estimated from allocation sizes. Visits at most
// `samples` elements (0: all) and extrapolates.
size_t collection_memory_bytes(const Entry& entry, size_t samples);
// Bytes of a value's elements, as records hold them; of a stream or a queue its memory.
size_t contents_bytes(const Entry& entry);

}  // namespace sluice
