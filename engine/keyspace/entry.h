// Entry: one key with its value, in one allocation.
//
// Layout: this header, then for a string the key and the value bytes, for a collection a pointer to
// its object and the key. One malloc a key, and eight bytes in the map that finds it: with a
// 53-byte key and a 300-byte value that is 384 bytes where Redis takes about 440. Entries move when
// a string grows, so nobody keeps an Entry* across a verb that may replace it
// (engine/keyspace/database.h says which).
#pragma once

#include <cstdint>

#include "engine/base/bytes.h"
#include "engine/base/hash.h"

namespace sluice {

enum class Type : uint8_t { kString, kList, kSet, kSortedSet, kHash, kStream, kQueue };

// As TYPE replies it.
Bytes type_name(Type type);

class Entry {
 public:
  static Entry* make_string(Bytes key, Bytes value, int64_t expire_ms);
  // Takes ownership of `object`, which is of the class that belongs to `type`.
  static Entry* make_object(Bytes key, Type type, void* object);
  // Frees the entry; a collection's object with it.
  static void destroy(Entry* entry);
  // Frees the entry of a collection alone: its object goes on without it.
  static void release(Entry* entry);

  Type type() const { return static_cast<Type>(type_); }
  Bytes key() const { return {data() + (is_string() ? 0 : sizeof(void*)), key_size_}; }

  // Unix milliseconds; 0: never.
  int64_t expire_ms() const { return expire_ms_; }
  void set_expire_ms(int64_t when) { expire_ms_ = when; }

  // Seconds (of some clock of the caller's) of the last access, for OBJECT IDLETIME.
  uint32_t access_s() const { return access_s_; }
  void set_access_s(uint32_t seconds) { access_s_ = seconds; }

  Bytes string() const { return {data() + key_size_, value_size_}; }
  // Puts `value` in place of the string's bytes where it fits; otherwise returns a new entry that
  // replaces this one (already freed). `value` must not point into this entry.
  static Entry* assign_string(Entry* entry, Bytes value);
  // The same for a part: the string becomes `size` bytes long (zeros where it grows) with `bytes`
  // at `offset`.
  static Entry* write_string(Entry* entry, size_t offset, Bytes bytes, size_t size);

  template <class Object>
  Object& object() const {
    return *static_cast<Object*>(object_pointer());
  }
  void* object_pointer() const {
    void* object;
    std::memcpy(&object, data(), sizeof(object));
    return object;
  }

  // Memory of this allocation alone, in bytes; a collection's object is not in it.
  size_t memory_bytes() const;

 private:
  static constexpr size_t kHeaderBytes = 20;

  bool is_string() const { return type_ == static_cast<uint32_t>(Type::kString); }
  char* data() { return reinterpret_cast<char*>(this) + kHeaderBytes; }
  const char* data() const { return reinterpret_cast<const char*>(this) + kHeaderBytes; }
  static Entry* allocate(size_t payload_bytes);
  static Entry* resize_string(Entry* entry, size_t size);

  int64_t expire_ms_;
  uint32_t key_size_;
  uint32_t value_size_;     // of a string
  uint32_t access_s_ : 28;  // eight years of seconds
  uint32_t type_ : 4;
};

struct EntryTraits {
  static constexpr size_t kMaxOrdered = 128;
  static Bytes key(const Entry* entry) { return entry->key(); }
  static uint64_t hash(Bytes key) { return hash_bytes(key); }
};

}  // namespace sluice
