// Entry: one key with its value, in one allocation.
//
// Layout: this header, then for a string the key and the value bytes, for a collection a pointer to
// its object and the key. The value of a long string comes after room for another key, so that it
// does not move when the key is renamed. Each key takes one malloc, and eight bytes in the map that
// finds it: with a 53-byte key and a 300-byte value that is 384 bytes, compared with about 440 in
// Redis. Entries move when a string grows, so an Entry* must not be kept across a function that may
// replace it (engine/keyspace/database.h says which).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "engine/base/bytes.h"
#include "engine/base/hash.h"

namespace sluice {

enum class Type : uint8_t { kString, kList, kSet, kSortedSet, kHash, kStream, kQueue };

// As TYPE replies it.
Bytes type_name(Type type);

// How Redis would store a string: by its text (as an integer, or short or long text), as text even
// if that is an integer, or as a buffer that it has written into. OBJECT shows it; it is not
// journaled.
enum class StringForm : uint8_t { kByText, kText, kBuffer };

class Entry {
 public:
  static Entry* make_string(Bytes key, Bytes value, int64_t expire_ms);
  // The same without copying the value: `block` becomes the entry. REQUIRES: can_take().
  static Entry* take_string(ByteBuffer& block, Bytes key, Bytes value, int64_t expire_ms);
  // Whether the value is long and is at the place in the block where an entry has it.
  static bool can_take(const ByteBuffer& block, Bytes key, Bytes value) {
    return value.data() == block.data() + kLongValueAt && gets_key_room(key.size(), value.size());
  }
  // Takes ownership of `object`, which has the class of `type`.
  static Entry* make_object(Bytes key, Type type, void* object);
  // Frees the entry, including a collection's object.
  static void destroy(Entry* entry);
  // Moves value, expiry and access time to an entry of another key and frees `entry`. `key` must
  // not point into it.
  static Entry* with_key(Entry* entry, Bytes key);
  // Frees the entry of a collection without its object.
  static void release(Entry* entry);

  Type type() const { return static_cast<Type>(type_); }
  Bytes key() const { return {data() + (is_string() ? 0 : sizeof(void*)), key_size_}; }

  // Unix milliseconds; 0: never.
  int64_t expire_ms() const { return expire_ms_; }
  void set_expire_ms(int64_t when) { expire_ms_ = when; }

  // The second of the last access, for OBJECT IDLETIME, on a clock of 26 bits that wraps around
  // every two years, which bounds the idle time. It skips second 0.
  void set_access_s(uint32_t second) { access_s_ = second; }
  static constexpr uint32_t kAccessSeconds = (1U << 26) - 1;
  static constexpr uint32_t kFirstAccess = 1;
  static uint32_t access_second(int64_t steady_ms) {
    return 1 + static_cast<uint32_t>(steady_ms / 1000 % kAccessSeconds);
  }
  // The second that is `idle_s` before `now`, at most a year.
  static uint32_t access_before(uint32_t now, int64_t idle_s) {
    const auto idle = static_cast<uint32_t>(std::min<int64_t>(idle_s, kAccessSeconds / 2));
    return 1 + (now - 1 + kAccessSeconds - idle) % kAccessSeconds;
  }
  uint32_t idle_s(uint32_t now) const {
    const uint32_t idle = (now + kAccessSeconds - access_s_) % kAccessSeconds;
    // Another thread's clock may be slightly ahead.
    return idle < kAccessSeconds - 3600 ? idle : 0;
  }

  StringForm string_form() const { return static_cast<StringForm>(form_); }
  void set_string_form(StringForm form) { form_ = static_cast<uint32_t>(form); }

  Bytes string() const { return {data() + value_offset(), value_size_}; }
  // Overwrites the string in place if the value fits; otherwise returns a new entry and frees this
  // one. `value` must not point into this entry.
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

  // Where the value of a long string begins in an entry that was made with a key of usual length.
  static constexpr size_t kLongValueAt = 20 + 512;

  // Memory of this allocation in bytes, without a collection's object.
  size_t memory_bytes() const;

 private:
  static constexpr size_t kHeaderBytes = 20;
  // From this length on a string has room for keys of up to kKeyRoom bytes.
  static constexpr size_t kLongString = 64 * 1024;
  static constexpr size_t kKeyRoom = kLongValueAt - kHeaderBytes;

  bool is_string() const { return type_ == static_cast<uint32_t>(Type::kString); }
  char* data() { return reinterpret_cast<char*>(this) + kHeaderBytes; }
  const char* data() const { return reinterpret_cast<const char*>(this) + kHeaderBytes; }
  size_t value_offset() const { return has_key_room_ != 0 ? kKeyRoom : key_size_; }
  static bool gets_key_room(size_t key_size, size_t value_size) {
    return value_size >= kLongString && key_size <= kKeyRoom;
  }
  static Entry* allocate(size_t payload_bytes);
  void set_string(Bytes key, size_t value_size, int64_t expire_ms, bool key_room);
  static Entry* make_key_room(Entry* entry);
  static Entry* resize_string(Entry* entry, size_t size);

  int64_t expire_ms_;
  uint32_t key_size_;
  uint32_t value_size_;  // of a string
  uint32_t access_s_ : 26;
  uint32_t form_ : 2;          // of a string
  uint32_t has_key_room_ : 1;  // of a string
  uint32_t type_ : 3;
};

// Destroys an entry that is in no database.
struct EntryEnd {
  void operator()(Entry* entry) const { Entry::destroy(entry); }
};
using OwnedEntry = std::unique_ptr<Entry, EntryEnd>;

struct EntryTraits {
  static constexpr size_t kMaxOrdered = 128;
  static Bytes key(const Entry* entry) { return entry->key(); }
  static uint64_t hash(Bytes key) { return hash_bytes(key); }
};

}  // namespace sluice
