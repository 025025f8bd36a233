#include "engine/structures/stream_node.h"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <new>

#include "engine/base/characters.h"
#include "engine/base/numbers.h"
#include "engine/base/varint.h"

namespace sluice {

namespace {

// The greatest length of a listpack in Redis.
constexpr uint64_t kMaxListpackBytes = uint64_t{1} << 30;
constexpr size_t kListpackFrameBytes = 7;  // before the first element and after the last

// The size of the length field after an element of this many bytes.
size_t back_length_bytes(size_t element) {
  if (element <= 127) return 1;
  if (element < 16383) return 2;
  if (element < 2097151) return 3;
  return element < 268435455 ? 4 : 5;
}

size_t with_back_length(size_t element) { return element + back_length_bytes(element); }

// The bytes that an integer or a text takes in a listpack.
size_t listpack_bytes_of(int64_t number) {
  if (number >= 0 && number <= 127) return 2;
  if (number >= -4096 && number <= 4095) return 3;
  if (number >= INT16_MIN && number <= INT16_MAX) return 4;
  if (number >= -(1 << 23) && number < (1 << 23)) return 5;
  if (number >= INT32_MIN && number <= INT32_MAX) return 6;
  return 10;
}

size_t listpack_bytes_of(Bytes text) {
  const size_t size = text.size();
  if (size != 0 && size <= 20 && (text[0] == '-' || is_digit(text[0]))) {
    if (const auto number = parse_i64(text)) return listpack_bytes_of(*number);
  }
  return with_back_length(size + (size < 64 ? 1 : size < 4096 ? 2 : 5));
}

size_t number_bytes(uint64_t number) {
  size_t bytes = 1;
  for (; number >= 0x80; number >>= 7) ++bytes;
  return bytes;
}

char* put_number(char* to, uint64_t number) {
  for (; number >= 0x80; number >>= 7) *to++ = static_cast<char>(number | 0x80);
  *to++ = static_cast<char>(number);
  return to;
}

char* put_text(char* to, Bytes text) {
  to = put_number(to, text.size());
  if (!text.empty()) std::memcpy(to, text.data(), text.size());
  return to + text.size();
}

size_t text_bytes(Bytes text) { return number_bytes(text.size()) + text.size(); }

}  // namespace

bool StreamId::increment() {
  if (++seq != 0) return true;
  return ++ms != 0;
}

bool StreamId::decrement() {
  if (seq-- != 0) return true;
  return ms-- != 0;
}

// --- Memory ---

StreamNode* StreamNode::allocate(size_t data_bytes) {
  void* memory = std::malloc(sizeof(StreamNode) + data_bytes);
  CHECK(memory != nullptr);
  StreamNode* node = new (memory) StreamNode;
  node->capacity_ = static_cast<uint32_t>(data_bytes);
  return node;
}

void StreamNode::destroy(StreamNode* node) { std::free(node); }

size_t StreamNode::memory_bytes() const {
  return malloc_usable_size(const_cast<StreamNode*>(this));
}

StreamNode* StreamNode::reserve(StreamNode* node, size_t more) {
  if (node->used_ + more <= node->capacity_) return node;
  node->close_gap();
  const size_t needed = node->used_ + more;
  if (needed <= node->capacity_) return node;
  CHECK(needed < UINT32_MAX);
  // Doubles small nodes. Entries beyond the usual size of a node are rare and large.
  const size_t room = needed < 2048 ? needed : needed / 8;
  const size_t capacity = std::min<size_t>(needed + room, UINT32_MAX);
  void* moved = std::realloc(static_cast<void*>(node), sizeof(StreamNode) + capacity);
  CHECK(moved != nullptr);
  node = static_cast<StreamNode*>(moved);
  node->capacity_ = static_cast<uint32_t>(capacity);
  return node;
}

void StreamNode::close_gap() {
  if (gap_ == 0) return;
  sought_ = 0;
  char* to = data() + names_bytes_;
  std::memmove(to, to + gap_, used_ - names_bytes_ - gap_);
  used_ -= gap_;
  gap_ = 0;
}

StreamNode* StreamNode::shrink_to_fit(StreamNode* node) {
  node->close_gap();
  if (node->capacity_ == node->used_) return node;
  void* moved = std::realloc(static_cast<void*>(node), sizeof(StreamNode) + node->used_);
  CHECK(moved != nullptr);
  node = static_cast<StreamNode*>(moved);
  node->capacity_ = node->used_;
  return node;
}

StreamNode* StreamNode::copy(const StreamNode& other) {
  StreamNode* node = allocate(other.used_);
  const uint32_t capacity = node->capacity_;
  *node = other;
  node->capacity_ = capacity;
  std::memcpy(node->data(), other.data(), other.used_);
  return node;
}

StreamNode* StreamNode::make(const StreamId& first, std::span<const Bytes> words) {
  size_t bytes = number_bytes(words.size() / 2);
  size_t listpack_bytes = kListpackFrameBytes + listpack_bytes_of(int64_t{0}) +
                          listpack_bytes_of(static_cast<int64_t>(words.size() / 2));
  for (size_t i = 0; i < words.size(); i += 2) {
    bytes += text_bytes(words[i]);
    listpack_bytes += listpack_bytes_of(words[i]);
  }
  StreamNode* node = allocate(std::max(kSmallestBytes - sizeof(StreamNode), bytes));
  node->first_ = first;
  char* to = put_number(node->data(), words.size() / 2);
  for (size_t i = 0; i < words.size(); i += 2) to = put_text(to, words[i]);
  node->names_bytes_ = static_cast<uint32_t>(bytes);
  node->used_ = node->names_bytes_;
  node->listpack_bytes_ = static_cast<uint32_t>(listpack_bytes);
  return node;
}

// --- Entries ---

bool StreamNode::is_full_for(uint64_t entry_bytes, const Limits& limits) const {
  const uint64_t counters =
      listpack_bytes_of(int64_t{live_}) + listpack_bytes_of(int64_t{deleted_});
  uint64_t max_bytes = limits.max_bytes;
  if (max_bytes == 0 || max_bytes > kMaxListpackBytes) max_bytes = kMaxListpackBytes;
  if (listpack_bytes_ + counters + entry_bytes >= max_bytes) return true;
  return limits.max_entries != 0 && uint64_t{live_} + deleted_ >= limits.max_entries;
}

bool StreamNode::has_names_of(std::span<const Bytes> words) const {
  const char* at = data();
  if (StreamEntry::take_number(at) != words.size() / 2) return false;
  for (size_t i = 0; i < words.size(); i += 2) {
    if (StreamEntry::take(at) != words[i]) return false;
  }
  return true;
}

StreamNode* StreamNode::append(StreamNode* node, const StreamId& id, std::span<const Bytes> words) {
  const bool same_names = node->has_names_of(words);
  const uint64_t count = words.size() / 2;
  const uint64_t ms = id.ms - node->first_.ms;
  const uint64_t seq = ms == 0 ? id.seq - node->first_.seq : id.seq;
  const uint64_t header = count << 1 | (same_names ? 1 : 0);
  size_t size = number_bytes(ms) + number_bytes(seq) + number_bytes(header);
  // Flags, the two parts of the id, and the number of the entry's elements at its end.
  const auto elements = static_cast<int64_t>(count + 3 + (same_names ? 0 : count + 1));
  size_t listpack_bytes = listpack_bytes_of(int64_t{0}) +
                          listpack_bytes_of(static_cast<int64_t>(ms)) +
                          listpack_bytes_of(static_cast<int64_t>(id.seq - node->first_.seq)) +
                          listpack_bytes_of(elements);
  if (!same_names) listpack_bytes += listpack_bytes_of(static_cast<int64_t>(count));
  for (size_t i = same_names ? 1 : 0; i < words.size(); i += same_names ? 2 : 1) {
    size += text_bytes(words[i]);
    listpack_bytes += listpack_bytes_of(words[i]);
  }
  node = reserve(node, number_bytes(size) + size);
  node->last_at_ = node->used_;
  char* to = put_number(node->data() + node->used_, size);
  to = put_number(put_number(put_number(to, ms), seq), header);
  for (size_t i = same_names ? 1 : 0; i < words.size(); i += same_names ? 2 : 1) {
    to = put_text(to, words[i]);
  }
  node->used_ = static_cast<uint32_t>(to - node->data());
  node->listpack_bytes_ += static_cast<uint32_t>(listpack_bytes);
  node->last_ = id;
  ++node->live_;
  return node;
}

const char* StreamNode::seek(const StreamId& id) const {
  if (live_ == 0 || last_ < id) return nullptr;
  if (id <= first_) return begin();
  // Compared as it is encoded.
  const uint64_t ms = id.ms - first_.ms;
  const uint64_t seq = ms == 0 ? id.seq - first_.seq : id.seq;
  const char* next = nullptr;
  const auto is_before = [&](const char* at) {
    const uint64_t size = StreamEntry::take_number(at);
    next = at + size;
    const uint64_t entry_ms = StreamEntry::take_number(at);
    return entry_ms < ms || (entry_ms == ms && StreamEntry::take_number(at) < seq);
  };
  const char* at = begin();
  // The readers of a stream ask for one id after the other.
  if (sought_ != 0 && is_before(data() + sought_)) at = next;
  for (; at != end(); at = next) {
    if (is_before(at)) continue;
    sought_ = static_cast<uint32_t>(at - data());
    return at;
  }
  return nullptr;
}

void StreamNode::read_last(StreamEntry& entry) const {
  CHECK(live_ != 0);
  for (const char* at = begin(); at != end();) at = read(at, entry);
}

bool StreamNode::erase(const StreamId& id, bool forgotten) {
  const char* at = seek(id);
  if (at == nullptr) return false;
  StreamEntry entry;
  const char* next = read(at, entry);
  if (entry.id() != id) return false;
  const auto size = static_cast<uint32_t>(next - at);
  sought_ = 0;
  if (at == begin()) {
    gap_ += size;  // so that repeated trimming moves nothing
  } else {
    std::memmove(const_cast<char*>(at), next, static_cast<size_t>(end() - next));
    used_ -= size;
  }
  --live_;
  if (!forgotten) ++deleted_;
  return true;
}

// --- From the journal ---

bool StreamNode::count_names(Bytes names, uint64_t& count) {
  if (!take_varint(names, count)) return false;
  Bytes name;
  for (uint64_t i = 0; i < count; ++i) {
    if (!take_bytes(names, name)) return false;
  }
  return names.empty();
}

bool StreamNode::take_entry(Bytes& bytes, const StreamId& first, StreamId& id,
                            std::optional<uint64_t>& names) {
  Bytes entry;
  uint64_t ms = 0;
  uint64_t seq = 0;
  uint64_t header = 0;
  if (!take_bytes(bytes, entry) || !take_varint(entry, ms) || !take_varint(entry, seq) ||
      !take_varint(entry, header)) {
    return false;
  }
  id = {first.ms + ms, ms == 0 ? first.seq + seq : seq};
  const uint64_t count = header >> 1;
  const bool same_names = (header & 1) != 0;
  names.reset();
  if (same_names) names = count;
  Bytes text;
  for (uint64_t i = 0; i < count; ++i) {
    if (!same_names && !take_bytes(entry, text)) return false;
    if (!take_bytes(entry, text)) return false;
  }
  return entry.empty() && id >= first;
}

bool StreamNode::read_id(Bytes packed, const StreamId& first, StreamId& id) {
  std::optional<uint64_t> names;
  return take_entry(packed, first, id, names) && packed.empty();
}

StreamNode* StreamNode::make(const Image& image) {
  uint64_t names = 0;
  if (!count_names(image.names, names) || image.live > UINT32_MAX || image.deleted > UINT32_MAX ||
      image.listpack_bytes > UINT32_MAX || image.last < image.first) {
    return nullptr;
  }
  StreamId last;
  uint64_t live = 0;
  for (Bytes rest = image.entries; !rest.empty(); ++live) {
    StreamId id;
    std::optional<uint64_t> same_names;
    if (!take_entry(rest, image.first, id, same_names) || same_names.value_or(names) != names ||
        (live != 0 && id <= last)) {
      return nullptr;
    }
    last = id;
  }
  if (live != image.live || (live != 0 && last > image.last)) return nullptr;
  StreamNode* node = allocate(image.names.size() + image.entries.size());
  node->first_ = image.first;
  node->last_ = image.last;
  node->names_bytes_ = static_cast<uint32_t>(image.names.size());
  node->used_ = node->capacity_;
  node->listpack_bytes_ = static_cast<uint32_t>(image.listpack_bytes);
  node->live_ = static_cast<uint32_t>(image.live);
  node->deleted_ = static_cast<uint32_t>(image.deleted);
  std::memcpy(node->data(), image.names.data(), image.names.size());
  if (!image.entries.empty()) {
    std::memcpy(node->data() + image.names.size(), image.entries.data(), image.entries.size());
  }
  return node;
}

bool StreamNode::put(StreamNode*& node, Bytes packed, uint64_t deleted, uint64_t listpack_bytes) {
  uint64_t names = 0;
  StreamId id;
  Bytes rest = packed;
  std::optional<uint64_t> same_names;
  if (!count_names(node->names(), names) || !take_entry(rest, node->first_, id, same_names) ||
      !rest.empty() || deleted > UINT32_MAX || listpack_bytes > UINT32_MAX) {
    return false;
  }
  // The entry was in an earlier node with this first id and was removed with it. The record of that
  // follows.
  if (same_names.value_or(names) != names) return true;
  node->erase(id, true);
  node->close_gap();
  node = reserve(node, packed.size());
  const char* before = node->seek(id);
  const size_t offset =
      before == nullptr ? node->used_ : static_cast<size_t>(before - node->data());
  char* to = node->data() + offset;
  std::memmove(to + packed.size(), to, node->used_ - offset);
  std::memcpy(to, packed.data(), packed.size());
  node->sought_ = 0;
  node->used_ += static_cast<uint32_t>(packed.size());
  ++node->live_;
  node->last_ = id;
  if (before != nullptr) {
    // The node is of a later state and has entries after this one.
    StreamEntry last;
    node->read_last(last);
    node->last_ = last.id();
  }
  node->deleted_ = static_cast<uint32_t>(deleted);
  node->listpack_bytes_ = static_cast<uint32_t>(listpack_bytes);
  return true;
}

}  // namespace sluice
