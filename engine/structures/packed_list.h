// PackedList: the value of a Redis list, a doubly linked chain of chunks of packed elements.
//
// A chunk is one block of at most 8 KiB with at most 1024 elements. An element that would fill more
// than half a chunk gets a chunk of its own, of its size. Elements are addressed by their position
// from the head; finding one costs a walk over the chunks from the nearer end. Pushes and pops at
// both ends touch one chunk. A short list is a single small chunk that grows by doubling.
//
// Threads: one owner at a time (the shard's lock). Ownership: the list owns all bytes. Views into
// it and iterators are valid until the next change. Bytes passed in must not be views into the same
// list.
//
// Layout of an element, readable from both sides: length, bytes, length again. A length below 254
// is one byte; else a marker (254, 255) on the outside and 2 or 4 bytes of length.
//
// Invariants:
// 1. Elements of a chunk fill [begin, end) of its data without gaps; no chunk is empty.
// 2. size_ and bytes_ are the sums over all chunks.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "engine/base/bytes.h"
#include "engine/base/check.h"

namespace sluice {

class PackedList {
  struct Chunk;

 public:
  // A position. It moves both ways and is invalid past either end.
  class Iterator {
   public:
    Iterator() = default;
    bool valid() const { return chunk_ != nullptr; }
    Bytes value() const { return element(chunk_->data() + offset_); }
    uint64_t index() const { return index_; }
    void next();
    void prev();

   private:
    friend class PackedList;
    Iterator(Chunk* chunk, uint32_t offset, uint64_t index)
        : chunk_(chunk), offset_(offset), index_(index) {}

    Chunk* chunk_ = nullptr;
    uint32_t offset_ = 0;
    uint64_t index_ = 0;
  };

  static constexpr uint32_t kMaxChunkCount = 1024;
  static constexpr uint32_t kMaxElementBytes = uint32_t{1} << 31;

  PackedList() = default;
  ~PackedList() { clear(); }
  PackedList(PackedList&& other) noexcept { swap(other); }
  PackedList& operator=(PackedList&& other) noexcept {
    if (this != &other) {
      clear();
      swap(other);
    }
    return *this;
  }
  PackedList(const PackedList&) = delete;
  PackedList& operator=(const PackedList&) = delete;
  void swap(PackedList& other) noexcept {
    std::swap(head_, other.head_);
    std::swap(tail_, other.tail_);
    std::swap(size_, other.size_);
    std::swap(bytes_, other.bytes_);
  }

  uint64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // Bytes on the heap, without the list object itself.
  size_t memory_bytes() const { return bytes_; }

  void push_back(Bytes value) {
    const uint64_t need = packed_bytes(value.size());
    Chunk* chunk = tail_;
    if (chunk == nullptr || chunk->capacity - chunk->end < need || chunk->count >= kMaxChunkCount) {
      chunk = room_behind(need);
    }
    write(chunk->data() + chunk->end, value);
    chunk->end += static_cast<uint32_t>(need);
    ++chunk->count;
    ++size_;
  }
  void push_front(Bytes value) {
    const uint64_t need = packed_bytes(value.size());
    Chunk* chunk = head_;
    if (chunk == nullptr || chunk->begin < need || chunk->count >= kMaxChunkCount) {
      chunk = room_before(need);
    }
    chunk->begin -= static_cast<uint32_t>(need);
    write(chunk->data() + chunk->begin, value);
    ++chunk->count;
    ++size_;
  }

  // REQUIRES for all of these: not empty().
  Bytes front() const { return element(head_->data() + head_->begin); }
  Bytes back() const { return element_before(tail_->data() + tail_->end); }
  void drop_front() {
    Chunk* chunk = head_;
    chunk->begin += static_cast<uint32_t>(packed_bytes(front().size()));
    after_pop(chunk);
  }
  void drop_back() {
    Chunk* chunk = tail_;
    chunk->end -= static_cast<uint32_t>(packed_bytes(back().size()));
    after_pop(chunk);
  }
  // Calls fn with a view of the element, which is invalid afterwards. fn must not change the list.
  template <class Fn>
  void pop_front(Fn fn) {
    fn(front());
    drop_front();
  }
  template <class Fn>
  void pop_back(Fn fn) {
    fn(back());
    drop_back();
  }
  std::string pop_front() {
    std::string value(front());
    drop_front();
    return value;
  }
  std::string pop_back() {
    std::string value(back());
    drop_back();
    return value;
  }

  // REQUIRES: index < size().
  Bytes at(uint64_t index) const { return iterate(index).value(); }
  // Invalid when index >= size().
  Iterator iterate(uint64_t index) const;
  Iterator begin() const { return iterate(0); }
  Iterator last() const { return size_ == 0 ? Iterator() : iterate(size_ - 1); }

  // REQUIRES: index < size().
  void set(uint64_t index, Bytes value);
  // REQUIRES: index <= size(); size() itself appends.
  void insert_before(uint64_t index, Bytes value);
  void insert_before(const Iterator& place, Bytes value);
  // REQUIRES: index < size().
  void erase(uint64_t index);
  // Erases the element at this place and returns the place of the next one.
  Iterator erase(const Iterator& place);
  // REQUIRES: first + count <= size(). Whole chunks are freed without reading their elements.
  void erase_range(uint64_t first, uint64_t count);
  void clear();

  // Verifies every invariant; for tests.
  void check() const;

 private:
  struct Chunk {
    Chunk* prev;
    Chunk* next;
    uint32_t capacity;  // of the data, which follows this header
    uint32_t begin;
    uint32_t end;
    uint32_t count;

    char* data() { return reinterpret_cast<char*>(this + 1); }
    uint32_t used() const { return end - begin; }
  };
  static constexpr uint32_t kChunkBytes = 8192;
  static constexpr uint32_t kFullCapacity = kChunkBytes - sizeof(Chunk);
  static constexpr uint32_t kSmallestBytes = 128;
  static constexpr unsigned char kTwoBytes = 254;
  static constexpr unsigned char kFourBytes = 255;

  static uint64_t packed_bytes(uint64_t size) {
    return size + (size < kTwoBytes ? 2 : size <= 0xffff ? 6 : 10);
  }
  static Bytes element(const char* packed) {
    const auto first = static_cast<unsigned char>(*packed);
    if (first < kTwoBytes) return {packed + 1, first};
    return long_element(packed);
  }
  static Bytes element_before(const char* end) {
    const auto last = static_cast<unsigned char>(end[-1]);
    if (last < kTwoBytes) return {end - 1 - last, last};
    return long_element_before(end);
  }
  static void write(char* to, Bytes value) {
    if (value.size() >= kTwoBytes) return write_long(to, value);
    to[0] = static_cast<char>(value.size());
    if (!value.empty()) std::memcpy(to + 1, value.data(), value.size());
    to[1 + value.size()] = static_cast<char>(value.size());
  }
  static Bytes long_element(const char* packed);
  static Bytes long_element_before(const char* end);
  static void write_long(char* to, Bytes value);

  void after_pop(Chunk* chunk) {
    --chunk->count;
    --size_;
    if (chunk->used() < chunk->capacity / 8) tidy_after_pop(chunk);
  }

  static bool may_take(const Chunk* chunk, uint64_t need) {
    return chunk->capacity - chunk->used() >= need && chunk->count < kMaxChunkCount;
  }
  static void slide(Chunk* chunk, uint32_t to);
  Chunk* room_behind(uint64_t need);
  Chunk* room_before(uint64_t need);
  Chunk* new_chunk(uint64_t need, Chunk* prev, Chunk* next);
  Chunk* resize_only(uint32_t bytes, bool at_end);
  bool grow_only(uint64_t need, bool at_end);
  void unlink(Chunk* chunk);
  void tidy_after_pop(Chunk* chunk);
  static void open_gap(Chunk* chunk, uint32_t offset, uint32_t need);
  static void close_gap(Chunk* chunk, uint32_t offset, uint32_t bytes);
  void split(Chunk* chunk, uint32_t offset, uint32_t elements_before);
  void join(Chunk* left, Chunk* right);
  Iterator settle(Iterator place);

  Chunk* head_ = nullptr;
  Chunk* tail_ = nullptr;
  uint64_t size_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace sluice
