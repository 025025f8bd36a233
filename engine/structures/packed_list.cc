#include "engine/structures/packed_list.h"

#include <algorithm>
#include <cstdlib>

namespace sluice {

// --- Elements ---

Bytes PackedList::long_element(const char* packed) {
  if (static_cast<unsigned char>(*packed) == kTwoBytes) {
    uint16_t size = 0;
    std::memcpy(&size, packed + 1, sizeof(size));
    return {packed + 3, size};
  }
  uint32_t size = 0;
  std::memcpy(&size, packed + 1, sizeof(size));
  return {packed + 5, size};
}

Bytes PackedList::long_element_before(const char* end) {
  if (static_cast<unsigned char>(end[-1]) == kTwoBytes) {
    uint16_t size = 0;
    std::memcpy(&size, end - 3, sizeof(size));
    return {end - 3 - size, size};
  }
  uint32_t size = 0;
  std::memcpy(&size, end - 5, sizeof(size));
  return {end - 5 - size, size};
}

void PackedList::write_long(char* to, Bytes value) {
  CHECK(value.size() <= kMaxElementBytes);
  const auto put = [&](auto size, unsigned char marker) {
    *to++ = static_cast<char>(marker);
    std::memcpy(to, &size, sizeof(size));
    to += sizeof(size);
    std::memcpy(to, value.data(), value.size());
    to += value.size();
    std::memcpy(to, &size, sizeof(size));
    to += sizeof(size);
    *to = static_cast<char>(marker);
  };
  if (value.size() <= 0xffff) {
    put(static_cast<uint16_t>(value.size()), kTwoBytes);
  } else {
    put(static_cast<uint32_t>(value.size()), kFourBytes);
  }
}

// --- Chunks ---

// Makes an empty chunk between two others, with room for `need` bytes, and for more where that
// makes sense.
PackedList::Chunk* PackedList::new_chunk(uint64_t need, Chunk* prev, Chunk* next) {
  CHECK(need <= uint64_t{kMaxElementBytes} + 10);
  uint64_t bytes = kChunkBytes;
  if (need > kFullCapacity / 2) {
    bytes = sizeof(Chunk) + need;
  } else if (head_ == nullptr) {
    bytes = kSmallestBytes;
    while (bytes - sizeof(Chunk) < need) bytes *= 2;
  }
  auto* chunk = static_cast<Chunk*>(std::malloc(bytes));
  CHECK(chunk != nullptr);
  *chunk = Chunk{prev, next, static_cast<uint32_t>(bytes - sizeof(Chunk)), 0, 0, 0};
  (prev == nullptr ? head_ : prev->next) = chunk;
  (next == nullptr ? tail_ : next->prev) = chunk;
  bytes_ += bytes;
  return chunk;
}

void PackedList::unlink(Chunk* chunk) {
  (chunk->prev == nullptr ? head_ : chunk->prev->next) = chunk->next;
  (chunk->next == nullptr ? tail_ : chunk->next->prev) = chunk->prev;
  bytes_ -= sizeof(Chunk) + chunk->capacity;
  std::free(chunk);
}

// Moves the elements to another place in the data.
void PackedList::slide(Chunk* chunk, uint32_t to) {
  const uint32_t used = chunk->used();
  std::memmove(chunk->data() + to, chunk->data() + chunk->begin, used);
  chunk->begin = to;
  chunk->end = to + used;
}

// Moves the only chunk into a block of another size, with its elements at the start or at the end.
PackedList::Chunk* PackedList::resize_only(uint32_t bytes, bool at_end) {
  Chunk* old = head_;
  auto* chunk = static_cast<Chunk*>(std::malloc(bytes));
  CHECK(chunk != nullptr);
  const auto capacity = static_cast<uint32_t>(bytes - sizeof(Chunk));
  const uint32_t used = old->used();
  const uint32_t begin = at_end ? capacity - used : 0;
  *chunk = Chunk{nullptr, nullptr, capacity, begin, begin + used, old->count};
  std::memcpy(chunk->data() + begin, old->data() + old->begin, used);
  bytes_ += bytes;
  bytes_ -= sizeof(Chunk) + old->capacity;
  std::free(old);
  head_ = tail_ = chunk;
  return chunk;
}

// Doubles the only chunk until `need` more bytes fit. Returns false if they cannot.
bool PackedList::grow_only(uint64_t need, bool at_end) {
  if (head_ == nullptr || head_ != tail_ || head_->count >= kMaxChunkCount) return false;
  const uint64_t wanted = sizeof(Chunk) + head_->used() + need;
  if (wanted > kChunkBytes) return false;
  uint32_t bytes = kSmallestBytes;
  while (bytes < wanted) bytes *= 2;
  if (bytes <= sizeof(Chunk) + head_->capacity) return false;
  resize_only(bytes, at_end);
  return true;
}

// The chunk that takes `need` bytes after the last element. Sliding pays off only if it gains much
// room (half a chunk).
PackedList::Chunk* PackedList::room_behind(uint64_t need) {
  Chunk* chunk = tail_;
  if (chunk != nullptr && may_take(chunk, need) && chunk->used() <= chunk->capacity / 2) {
    slide(chunk, 0);
    return chunk;
  }
  if (grow_only(need, false)) return tail_;
  return new_chunk(need, tail_, nullptr);
}

PackedList::Chunk* PackedList::room_before(uint64_t need) {
  Chunk* chunk = head_;
  if (chunk != nullptr && may_take(chunk, need) && chunk->used() <= chunk->capacity / 2) {
    slide(chunk, chunk->capacity - chunk->used());
    return chunk;
  }
  if (grow_only(need, true)) return head_;
  chunk = new_chunk(need, nullptr, head_);
  chunk->begin = chunk->end = chunk->capacity;
  return chunk;
}

void PackedList::tidy_after_pop(Chunk* chunk) {
  if (chunk->count == 0) return unlink(chunk);
  // A short list that was long once shrinks its block.
  const auto bytes = static_cast<uint32_t>(sizeof(Chunk) + chunk->capacity);
  if (head_ != tail_ || bytes <= 2 * kSmallestBytes) return;
  uint32_t smaller = kSmallestBytes;
  while (smaller < sizeof(Chunk) + 2 * chunk->used()) smaller *= 2;
  if (smaller < bytes) resize_only(smaller, false);
}

// --- Positions ---

void PackedList::Iterator::next() {
  ++index_;
  offset_ += static_cast<uint32_t>(packed_bytes(value().size()));
  if (offset_ < chunk_->end) return;
  chunk_ = chunk_->next;
  if (chunk_ != nullptr) offset_ = chunk_->begin;
}

void PackedList::Iterator::prev() {
  --index_;
  if (offset_ == chunk_->begin) {
    chunk_ = chunk_->prev;
    if (chunk_ == nullptr) return;
    offset_ = chunk_->end;
  }
  offset_ -= static_cast<uint32_t>(packed_bytes(element_before(chunk_->data() + offset_).size()));
}

PackedList::Iterator PackedList::iterate(uint64_t index) const {
  if (index >= size_) return Iterator();
  Chunk* chunk = nullptr;
  uint64_t first = 0;  // The index of the chunk's first element.
  if (index < size_ / 2) {
    for (chunk = head_; index - first >= chunk->count; chunk = chunk->next) first += chunk->count;
  } else {
    chunk = tail_;
    for (first = size_ - chunk->count; index < first; first -= chunk->count) chunk = chunk->prev;
  }
  if (index - first < chunk->count / 2) {
    Iterator place(chunk, chunk->begin, first);
    while (place.index_ < index) place.next();
    return place;
  }
  Iterator place(chunk, chunk->end, first + chunk->count);
  do {
    place.prev();
  } while (place.index_ > index);
  return place;
}

// --- Changes in the middle ---

// Opens a gap of `need` bytes at `offset`. The elements before it may move: the gap begins as many
// bytes after chunk->begin as `offset` did. REQUIRES: may_take.
void PackedList::open_gap(Chunk* chunk, uint32_t offset, uint32_t need) {
  char* data = chunk->data();
  const uint32_t before = offset - chunk->begin;
  const uint32_t behind = chunk->end - offset;
  const bool room_behind = chunk->capacity - chunk->end >= need;
  if (chunk->begin >= need && (before < behind || !room_behind)) {
    std::memmove(data + chunk->begin - need, data + chunk->begin, before);
    chunk->begin -= need;
    return;
  }
  if (!room_behind) {
    slide(chunk, 0);
    offset = before;
  }
  std::memmove(data + offset + need, data + offset, behind);
  chunk->end += need;
}

// Removes `bytes` at `offset` by moving the shorter side.
void PackedList::close_gap(Chunk* chunk, uint32_t offset, uint32_t bytes) {
  char* data = chunk->data();
  const uint32_t before = offset - chunk->begin;
  const uint32_t behind = chunk->end - offset - bytes;
  if (before < behind) {
    std::memmove(data + chunk->begin + bytes, data + chunk->begin, before);
    chunk->begin += bytes;
  } else {
    std::memmove(data + offset, data + offset + bytes, behind);
    chunk->end -= bytes;
  }
}

// Moves the elements from `offset` on into a new chunk after this one.
void PackedList::split(Chunk* chunk, uint32_t offset, uint32_t elements_before) {
  const uint32_t bytes = chunk->end - offset;
  Chunk* right = new_chunk(bytes, chunk, chunk->next);
  std::memcpy(right->data(), chunk->data() + offset, bytes);
  right->end = bytes;
  right->count = chunk->count - elements_before;
  chunk->end = offset;
  chunk->count = elements_before;
}

void PackedList::join(Chunk* left, Chunk* right) {
  if (left->capacity - left->end < right->used()) slide(left, 0);
  std::memcpy(left->data() + left->end, right->data() + right->begin, right->used());
  left->end += right->used();
  left->count += right->count;
  unlink(right);
}

// Cleans up after an erase in the middle: joins a sparse chunk with a neighbour, frees an empty
// one, and returns the place of the element that followed.
PackedList::Iterator PackedList::settle(Iterator place) {
  Chunk* chunk = place.chunk_;
  if (chunk->count == 0) {
    Chunk* next = chunk->next;
    unlink(chunk);
    if (next == nullptr) return Iterator();
    return Iterator(next, next->begin, place.index_);
  }
  uint32_t before = place.offset_ - chunk->begin;
  const auto fit = [](const Chunk* left, const Chunk* right) {
    const uint32_t used = left->used() + right->used();
    return used <= std::min(left->capacity, kFullCapacity / 2) &&
           left->count + right->count <= kMaxChunkCount / 2;
  };
  if (chunk->used() < kFullCapacity / 4) {
    if (chunk->next != nullptr && fit(chunk, chunk->next)) {
      join(chunk, chunk->next);
    } else if (chunk->prev != nullptr && fit(chunk->prev, chunk)) {
      Chunk* left = chunk->prev;
      before += left->used();
      join(left, chunk);
      chunk = left;
    }
  }
  const uint32_t offset = chunk->begin + before;
  if (offset < chunk->end) return Iterator(chunk, offset, place.index_);
  chunk = chunk->next;
  return chunk == nullptr ? Iterator() : Iterator(chunk, chunk->begin, place.index_);
}

void PackedList::insert_before(uint64_t index, Bytes value) {
  if (index == 0) return push_front(value);
  if (index == size_) return push_back(value);
  insert_before(iterate(index), value);
}

void PackedList::insert_before(const Iterator& place, Bytes value) {
  if (!place.valid()) return push_back(value);
  if (place.index_ == 0) return push_front(value);
  const uint64_t need = packed_bytes(value.size());
  Chunk* chunk = place.chunk_;
  uint32_t before = place.offset_ - chunk->begin;  // Bytes in the chunk before the new element.
  if (!may_take(chunk, need) && grow_only(need, false)) chunk = head_;
  if (!may_take(chunk, need)) {
    if (before > 0) {
      uint32_t elements_before = 0;
      for (uint32_t at = chunk->begin; at < place.offset_; ++elements_before) {
        at += static_cast<uint32_t>(packed_bytes(element(chunk->data() + at).size()));
      }
      split(chunk, place.offset_, elements_before);
    } else {
      chunk = chunk->prev;
    }
    // The place is now the end of `chunk` and the beginning of the next one.
    if (may_take(chunk, need)) {
      before = chunk->used();
    } else if (may_take(chunk->next, need)) {
      chunk = chunk->next;
      before = 0;
    } else {
      chunk = new_chunk(need, chunk, chunk->next);
      before = 0;
    }
  }
  open_gap(chunk, chunk->begin + before, static_cast<uint32_t>(need));
  write(chunk->data() + chunk->begin + before, value);
  ++chunk->count;
  ++size_;
}

void PackedList::set(uint64_t index, Bytes value) {
  CHECK(index < size_);
  const Iterator place = iterate(index);
  const auto old_bytes = static_cast<uint32_t>(packed_bytes(place.value().size()));
  const uint64_t new_bytes = packed_bytes(value.size());
  Chunk* chunk = place.chunk_;
  const uint32_t before = place.offset_ - chunk->begin;
  if (old_bytes != new_bytes) {
    if (chunk->capacity - chunk->used() + old_bytes < new_bytes) {
      insert_before(place, value);
      erase(index + 1);
      return;
    }
    close_gap(chunk, place.offset_, old_bytes);
    open_gap(chunk, chunk->begin + before, static_cast<uint32_t>(new_bytes));
  }
  write(chunk->data() + chunk->begin + before, value);
}

void PackedList::erase(uint64_t index) {
  CHECK(index < size_);
  erase(iterate(index));
  if (head_ != nullptr && head_->used() < head_->capacity / 8) tidy_after_pop(head_);
}

PackedList::Iterator PackedList::erase(const Iterator& place) {
  Chunk* chunk = place.chunk_;
  const uint32_t before = place.offset_ - chunk->begin;
  close_gap(chunk, place.offset_, static_cast<uint32_t>(packed_bytes(place.value().size())));
  --chunk->count;
  --size_;
  return settle(Iterator(chunk, chunk->begin + before, place.index_));
}

void PackedList::erase_range(uint64_t first, uint64_t count) {
  CHECK(first <= size_ && count <= size_ - first);
  if (count == 0) return;
  Iterator place = iterate(first);
  while (count > 0) {
    Chunk* chunk = place.chunk_;
    if (place.offset_ == chunk->begin && chunk->count <= count) {
      Chunk* next = chunk->next;
      count -= chunk->count;
      size_ -= chunk->count;
      unlink(chunk);
      place = next == nullptr ? Iterator() : Iterator(next, next->begin, first);
      continue;
    }
    uint32_t end = place.offset_;
    uint32_t erased = 0;
    while (end < chunk->end && erased < count) {
      end += static_cast<uint32_t>(packed_bytes(element(chunk->data() + end).size()));
      ++erased;
    }
    const uint32_t before = place.offset_ - chunk->begin;
    close_gap(chunk, place.offset_, end - place.offset_);
    chunk->count -= erased;
    size_ -= erased;
    count -= erased;
    place = settle(Iterator(chunk, chunk->begin + before, first));
  }
  if (head_ != nullptr && head_->used() < head_->capacity / 8) tidy_after_pop(head_);
}

void PackedList::clear() {
  for (Chunk* chunk = head_; chunk != nullptr;) {
    Chunk* next = chunk->next;
    std::free(chunk);
    chunk = next;
  }
  head_ = tail_ = nullptr;
  size_ = 0;
  bytes_ = 0;
}

void PackedList::check() const {
  uint64_t size = 0;
  uint64_t bytes = 0;
  const Chunk* prev = nullptr;
  for (Chunk* chunk = head_; chunk != nullptr; chunk = chunk->next) {
    CHECK(chunk->prev == prev && chunk->count > 0 && chunk->count <= kMaxChunkCount);
    CHECK(chunk->begin < chunk->end && chunk->end <= chunk->capacity);
    uint32_t count = 0;
    uint32_t offset = chunk->begin;
    for (; offset < chunk->end; ++count) {
      const Bytes value = element(chunk->data() + offset);
      offset += static_cast<uint32_t>(packed_bytes(value.size()));
      CHECK(element_before(chunk->data() + offset).data() == value.data());
    }
    CHECK(offset == chunk->end && count == chunk->count);
    size += count;
    bytes += sizeof(Chunk) + chunk->capacity;
    prev = chunk;
  }
  CHECK(prev == tail_ && size == size_ && bytes == bytes_);
}

}  // namespace sluice
