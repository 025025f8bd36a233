#include "engine/keyspace/collections.h"

#include <malloc.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "engine/queue/queue.h"
#include "engine/structures/stream.h"

namespace sluice {

namespace {

void* allocate(size_t bytes) {
  void* memory = std::malloc(bytes);
  CHECK(memory != nullptr);
  return memory;
}

void copy_to(char* to, Bytes bytes) {
  if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
}

}  // namespace

Field* Field::make(Bytes name, Bytes value) {
  Field* field = new (allocate(sizeof(Field) + name.size() + value.size())) Field;
  field->name_size_ = static_cast<uint32_t>(name.size());
  field->value_size_ = static_cast<uint32_t>(value.size());
  copy_to(field->data(), name);
  copy_to(field->data() + name.size(), value);
  return field;
}

bool Field::overwrite(Bytes value) {
  if (value.size() != value_size_) return false;
  // The value may be the field's own.
  if (!value.empty()) std::memmove(data() + name_size_, value.data(), value.size());
  return true;
}

void Field::destroy(Field* field) { std::free(field); }

Member* Member::make(Bytes bytes) {
  Member* member = new (allocate(sizeof(Member) + bytes.size())) Member;
  member->size_ = static_cast<uint32_t>(bytes.size());
  copy_to(reinterpret_cast<char*>(member + 1), bytes);
  return member;
}

void Member::destroy(Member* member) { std::free(member); }

ScoredMember* ScoredMember::make(Bytes bytes, double score) {
  size_t size = kHeaderBytes + bytes.size();
  if (size < sizeof(ScoredMember)) size = sizeof(ScoredMember);
  ScoredMember* member = new (allocate(size)) ScoredMember;
  member->score_ = score;
  member->size_ = static_cast<uint32_t>(bytes.size());
  copy_to(reinterpret_cast<char*>(member) + kHeaderBytes, bytes);
  return member;
}

void ScoredMember::destroy(ScoredMember* member) { std::free(member); }

Hash::~Hash() { fields.for_each(Field::destroy); }
Set::~Set() { members.for_each(Member::destroy); }
SortedSet::~SortedSet() { members.for_each(ScoredMember::destroy); }

uint64_t SortedSet::minor(Bytes member) {
  uint64_t prefix = 0;
  std::memcpy(&prefix, member.data(), member.size() < 8 ? member.size() : 8);
  return __builtin_bswap64(prefix);
}

void* make_collection(Type type) {
  switch (type) {
    case Type::kList:
      return new List;
    case Type::kSet:
      return new Set;
    case Type::kSortedSet:
      return new SortedSet;
    case Type::kHash:
      return new Hash;
    case Type::kStream:
      return new Stream;
    case Type::kQueue:
      return new Queue;
    default:
      CHECK(false && "no collection of this type");
  }
  return nullptr;
}

void destroy_collection(Type type, void* object) {
  switch (type) {
    case Type::kList:
      delete static_cast<List*>(object);
      return;
    case Type::kSet:
      delete static_cast<Set*>(object);
      return;
    case Type::kSortedSet:
      delete static_cast<SortedSet*>(object);
      return;
    case Type::kHash:
      delete static_cast<Hash*>(object);
      return;
    case Type::kStream:
      delete static_cast<Stream*>(object);
      return;
    case Type::kQueue:
      delete static_cast<Queue*>(object);
      return;
    default:
      CHECK(false && "no collection of this type");
  }
}

size_t collection_size(const Entry& entry) {
  switch (entry.type()) {
    case Type::kList:
      return entry.object<List>().items.size();
    case Type::kSet:
      return entry.object<Set>().members.size();
    case Type::kSortedSet:
      return entry.object<SortedSet>().members.size();
    case Type::kHash:
      return entry.object<Hash>().fields.size();
    case Type::kStream:
      return entry.object<Stream>().length();
    case Type::kQueue:
      return entry.object<Queue>().jobs.size();
    default:
      return 0;
  }
}

namespace {

template <class Map>
size_t nodes_memory_bytes(const Map& map, size_t samples) {
  size_t seen = 0;
  size_t bytes = 0;
  const size_t wanted = samples == 0 ? map.size() : samples;
  uint64_t cursor = 0;
  do {
    cursor = map.scan(cursor, 64, [&](auto* node) {
      ++seen;
      bytes += malloc_usable_size(node);
    });
  } while (cursor != 0 && seen < wanted);
  return seen == 0 ? 0 : bytes * map.size() / seen;
}

}  // namespace

size_t collection_memory_bytes(const Entry& entry, size_t samples) {
  switch (entry.type()) {
    case Type::kList:
      return sizeof(List) + entry.object<List>().items.memory_bytes();
    case Type::kSet: {
      const Set& set = entry.object<Set>();
      return sizeof(Set) + set.members.memory_bytes() + nodes_memory_bytes(set.members, samples);
    }
    case Type::kSortedSet: {
      const SortedSet& sorted = entry.object<SortedSet>();
      return sizeof(SortedSet) + sorted.members.memory_bytes() + sorted.order.memory_bytes() +
             nodes_memory_bytes(sorted.members, samples);
    }
    case Type::kHash: {
      const Hash& hash = entry.object<Hash>();
      return sizeof(Hash) + hash.fields.memory_bytes() + nodes_memory_bytes(hash.fields, samples);
    }
    case Type::kStream:
      return entry.object<Stream>().memory_bytes();
    case Type::kQueue:
      return entry.object<Queue>().memory_bytes();
    default:
      return 0;
  }
}

size_t contents_bytes(const Entry& entry) {
  size_t bytes = 0;
  switch (entry.type()) {
    case Type::kString:
      return entry.string().size();
    case Type::kSet:
      entry.object<Set>().members.for_each(
          [&](const Member* member) { bytes += member->bytes().size(); });
      return bytes;
    case Type::kSortedSet:
      entry.object<SortedSet>().members.for_each(
          [&](const ScoredMember* member) { bytes += member->bytes().size() + sizeof(double); });
      return bytes;
    case Type::kHash:
      entry.object<Hash>().fields.for_each(
          [&](const Field* field) { bytes += field->name().size() + field->value().size(); });
      return bytes;
    default:
      return collection_memory_bytes(entry, 0);
  }
}

}  // namespace sluice
