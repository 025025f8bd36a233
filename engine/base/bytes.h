// Byte strings: views, comparison without case, Redis's glob, and a growable output buffer.
//
// Keys, values and arguments are opaque bytes; a view never owns them. All functions are pure.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "engine/base/check.h"

namespace sluice {

using Bytes = std::string_view;

constexpr char ascii_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

// The same for eight characters at once.
inline uint64_t ascii_lower8(uint64_t bytes) {
  constexpr uint64_t kOnes = 0x0101010101010101ULL;
  const uint64_t ascii = bytes & (0x7f * kOnes);
  const uint64_t from_a = ascii + (0x80 - 'A') * kOnes;
  const uint64_t past_z = ascii + (0x80 - 'Z' - 1) * kOnes;
  const uint64_t upper = (from_a & ~past_z & ~bytes) & (0x80 * kOnes);
  return bytes | (upper >> 2);
}

// The first and the last four characters, which are all of a word of up to eight.
// REQUIRES: there are four.
inline uint64_t word8(Bytes word) {
  uint32_t first;
  uint32_t last;
  std::memcpy(&first, word.data(), 4);
  std::memcpy(&last, word.data() + word.size() - 4, 4);
  return first | static_cast<uint64_t>(last) << 32;
}

inline bool equals_ignore_case(Bytes a, Bytes b) {
  if (a.size() != b.size()) return false;
  // Most words of the grammar.
  if (a.size() >= 4 && a.size() <= 8) return ascii_lower8(word8(a)) == ascii_lower8(word8(b));
  for (size_t i = 0; i < a.size(); ++i) {
    if (ascii_lower(a[i]) != ascii_lower(b[i])) return false;
  }
  return true;
}

std::string to_lower(Bytes text);
std::string to_upper(Bytes text);

// Redis's glob: `*`, `?`, `[a-c]`, `[^x]`, `\` escapes. Each star costs time linear in pattern
// times text. The recursion is at most as deep as the number of stars that can still match.
bool glob_match(Bytes pattern, Bytes text, bool ignore_case = false);

// A buffer that grows at its end, in one allocation. Replies and journal records are built in it.
// Move-only. The caller fills the room that `grow` returns and then claims it with `advance`.
class ByteBuffer {
 public:
  ByteBuffer() = default;
  ByteBuffer(ByteBuffer&& other) noexcept;
  ByteBuffer& operator=(ByteBuffer&& other) noexcept;
  ByteBuffer(const ByteBuffer&) = delete;
  ByteBuffer& operator=(const ByteBuffer&) = delete;
  ~ByteBuffer();

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  size_t capacity() const { return capacity_; }
  const char* data() const { return data_; }
  char* data() { return data_; }
  Bytes view() const { return {data_, size_}; }

  // Returns room for at least `count` more bytes, valid until the next call.
  char* grow(size_t count) {
    if (capacity_ - size_ < count) reallocate(size_ + count);
    return data_ + size_;
  }
  void advance(size_t count) { size_ += count; }

  void push(char c) {
    *grow(1) = c;
    ++size_;
  }
  void append(Bytes bytes) { append(bytes.data(), bytes.size()); }
  void append(const char* bytes, size_t count) {
    char* to = grow(count);
    if (count != 0) std::memcpy(to, bytes, count);
    size_ += count;
  }
  // Opens a gap of `bytes` at `offset` and fills it. Used for headers whose count is known late.
  void insert(size_t offset, Bytes bytes);
  void erase_front(size_t count);
  void resize(size_t size) {
    if (size > size_) grow(size - size_);
    size_ = size;
  }
  void clear() { size_ = 0; }
  // Hands the allocation (of malloc) over to the caller and leaves the buffer empty.
  char* release();
  // Frees the allocation if a rare large use has left it larger than `keep` bytes.
  void shrink(size_t keep);

 private:
  void reallocate(size_t needed);

  char* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace sluice
