#include "engine/keyspace/entry.h"

#include <malloc.h>

#include <cstdlib>
#include <new>

#include "engine/keyspace/collections.h"

namespace sluice {

Bytes type_name(Type type) {
  switch (type) {
    case Type::kString:
      return "string";
    case Type::kList:
      return "list";
    case Type::kSet:
      return "set";
    case Type::kSortedSet:
      return "zset";
    case Type::kHash:
      return "hash";
    case Type::kStream:
      return "stream";
    case Type::kQueue:
      return "queue";
  }
  return "none";
}

Entry* Entry::allocate(size_t payload_bytes) {
  size_t bytes = kHeaderBytes + payload_bytes;
  if (bytes < sizeof(Entry)) bytes = sizeof(Entry);
  void* memory = std::malloc(bytes);
  CHECK(memory != nullptr);
  return new (memory) Entry;
}

Entry* Entry::make_string(Bytes key, Bytes value, int64_t expire_ms) {
  const bool key_room = gets_key_room(key.size(), value.size());
  Entry* entry = allocate((key_room ? kKeyRoom : key.size()) + value.size());
  entry->set_string(key, value.size(), expire_ms, key_room);
  if (!value.empty()) {
    std::memcpy(entry->data() + entry->value_offset(), value.data(), value.size());
  }
  return entry;
}

Entry* Entry::take_string(ByteBuffer& block, Bytes key, Bytes value, int64_t expire_ms) {
  Entry* entry = new (block.release()) Entry;
  entry->set_string(key, value.size(), expire_ms, true);
  return entry;
}

void Entry::set_string(Bytes key, size_t value_size, int64_t expire_ms, bool key_room) {
  expire_ms_ = expire_ms;
  key_size_ = static_cast<uint32_t>(key.size());
  type_ = static_cast<uint32_t>(Type::kString);
  value_size_ = static_cast<uint32_t>(value_size);
  access_s_ = kFirstAccess;
  form_ = 0;
  has_key_room_ = key_room ? 1 : 0;
  std::memcpy(data(), key.data(), key.size());
}

Entry* Entry::make_object(Bytes key, Type type, void* object) {
  Entry* entry = allocate(sizeof(void*) + key.size());
  entry->expire_ms_ = 0;
  entry->key_size_ = static_cast<uint32_t>(key.size());
  entry->type_ = static_cast<uint32_t>(type);
  entry->value_size_ = 0;
  entry->access_s_ = kFirstAccess;
  entry->form_ = 0;
  entry->has_key_room_ = 0;
  std::memcpy(entry->data(), &object, sizeof(object));
  std::memcpy(entry->data() + sizeof(object), key.data(), key.size());
  return entry;
}

void Entry::destroy(Entry* entry) {
  if (!entry->is_string()) destroy_collection(entry->type(), entry->object_pointer());
  std::free(entry);
}

void Entry::release(Entry* entry) {
  CHECK(!entry->is_string());
  std::free(entry);
}

Entry* Entry::with_key(Entry* entry, Bytes key) {
  const bool fits =
      key.size() == entry->key_size_ || (entry->has_key_room_ != 0 && key.size() <= kKeyRoom);
  if (fits) {
    entry->key_size_ = static_cast<uint32_t>(key.size());
    std::memcpy(entry->data() + (entry->is_string() ? 0 : sizeof(void*)), key.data(), key.size());
    return entry;
  }
  Entry* made = entry->is_string() ? make_string(key, entry->string(), entry->expire_ms_)
                                   : make_object(key, entry->type(), entry->object_pointer());
  made->expire_ms_ = entry->expire_ms_;
  made->access_s_ = entry->access_s_;
  made->form_ = entry->form_;
  std::free(entry);
  return made;
}

size_t Entry::memory_bytes() const { return malloc_usable_size(const_cast<Entry*>(this)); }

// REQUIRES: the value is not long yet.
Entry* Entry::make_key_room(Entry* entry) {
  void* moved =
      std::realloc(static_cast<void*>(entry), kHeaderBytes + kKeyRoom + entry->value_size_);
  CHECK(moved != nullptr);
  entry = static_cast<Entry*>(moved);
  std::memmove(entry->data() + kKeyRoom, entry->data() + entry->key_size_, entry->value_size_);
  entry->has_key_room_ = 1;
  return entry;
}

// Gives the string `size` bytes of room and keeps the first min(old, new) bytes of the value.
Entry* Entry::resize_string(Entry* entry, size_t size) {
  CHECK(entry->is_string());
  if (entry->has_key_room_ != 0 && size < kLongString / 2) {
    const size_t kept = std::min<size_t>(size, entry->value_size_);
    std::memmove(entry->data() + entry->key_size_, entry->data() + kKeyRoom, kept);
    entry->has_key_room_ = 0;
  } else if (entry->has_key_room_ == 0 && gets_key_room(entry->key_size_, size)) {
    entry = make_key_room(entry);
  }
  const size_t needed = kHeaderBytes + entry->value_offset() + size;
  const size_t usable = malloc_usable_size(entry);
  // Shrinking in place keeps the common rewrite cheap. Below half of the size the memory is freed.
  if (needed > usable || needed < usable / 2) {
    size_t bytes = needed;
    // Without room to grow, repeated appends would copy the whole string each time.
    if (size > entry->value_size_ && entry->value_size_ != 0 && needed > usable && needed > 128) {
      const size_t room = size < (1U << 20) ? size / 2 : (1U << 20);
      bytes += size - entry->value_size_ < 64 ? room : 0;
    }
    if (bytes < sizeof(Entry)) bytes = sizeof(Entry);
    void* moved = std::realloc(static_cast<void*>(entry), bytes);
    CHECK(moved != nullptr);
    entry = static_cast<Entry*>(moved);
  }
  entry->value_size_ = static_cast<uint32_t>(size);
  return entry;
}

Entry* Entry::assign_string(Entry* entry, Bytes value) {
  if (value.size() != entry->value_size_) entry = resize_string(entry, value.size());
  if (!value.empty())
    std::memcpy(entry->data() + entry->value_offset(), value.data(), value.size());
  return entry;
}

Entry* Entry::write_string(Entry* entry, size_t offset, Bytes bytes, size_t size) {
  const size_t old_size = entry->value_size_;
  CHECK(offset + bytes.size() <= size);
  entry = resize_string(entry, size);
  char* value = entry->data() + entry->value_offset();
  if (size > old_size) std::memset(value + old_size, 0, size - old_size);
  if (!bytes.empty()) std::memcpy(value + offset, bytes.data(), bytes.size());
  return entry;
}

}  // namespace sluice
