#include "engine/queue/event_log.h"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/numbers.h"
#include "engine/base/varint.h"

namespace sluice {

namespace {

// A chunk is closed before it would exceed this size. A single larger event has a chunk of its own.
constexpr size_t kChunkBytes = 4096;

constexpr std::array<Bytes, kEventTypes> kEventTypeNames = {
    "none",    "added",    "updated",   "ready",     "started",   "completed",
    "failed",  "retrying", "returned",  "reclaimed", "signalled", "cancelled",
    "expired", "moved",    "forgotten", "progress"};

// Decodes the event at the front of `bytes`, except for its number.
void take_event(Bytes& bytes, int64_t first_ms, Event& event) {
  int64_t difference = 0;
  bool whole = take_signed(bytes, difference) && !bytes.empty();
  CHECK(whole);
  event.time_ms = first_ms + difference;
  event.type = static_cast<EventType>(bytes.front());
  bytes.remove_prefix(1);
  whole = take_bytes(bytes, event.id) && take_bytes(bytes, event.fields);
  CHECK(whole);
}

}  // namespace

Bytes event_type_name(EventType type) { return kEventTypeNames[static_cast<size_t>(type)]; }

std::optional<EventType> parse_event_type(Bytes name) {
  for (size_t i = 1; i < kEventTypes; ++i) {
    if (equals_ignore_case(name, kEventTypeNames[i])) return static_cast<EventType>(i);
  }
  return std::nullopt;
}

void EventLog::append(uint64_t seq, int64_t time_ms, EventType type, Bytes id, Bytes fields) {
  CHECK(type != EventType::kNone);
  last_seq_ = std::max(last_seq_, seq);
  missed_ = false;
  if (count_ != 0) {
    if (seq < first_seq_ + count_) return;
    if (seq > first_seq_ + count_) clear();
  }
  if (chunks_.empty()) open_chunk(seq, time_ms);
  Chunk* chunk = &chunks_.back();
  newest_offset_ = chunk->bytes.size();
  put_event(*chunk, time_ms, type, id, fields);
  if (chunk->bytes.size() > kChunkBytes && newest_offset_ != 0) {
    chunk->bytes.resize(newest_offset_);
    chunk->bytes.shrink_to_fit();
    chunk = &open_chunk(seq, time_ms);
    newest_offset_ = 0;
    put_event(*chunk, time_ms, type, id, fields);
  }
  chunk->types |= event_bit(type);
  ++chunk->count;
  if (count_++ != 0) return;
  first_seq_ = seq;
  oldest_ms_ = time_ms;
}

EventLog::Chunk& EventLog::open_chunk(uint64_t seq, int64_t time_ms) {
  Chunk& chunk = chunks_.emplace_back();
  chunk.first_seq = seq;
  chunk.first_ms = time_ms;
  if (spill_ != nullptr && chunks_.size() > kTailChunks) {
    Chunk& older = chunks_[chunks_.size() - 1 - kTailChunks];
    if (older.spilled == nullptr) older.spilled = spill_->keep(std::exchange(older.bytes, {}));
  }
  return chunk;
}

void EventLog::put_event(Chunk& chunk, int64_t time_ms, EventType type, Bytes id, Bytes fields) {
  std::string& bytes = chunk.bytes;
  // Growth by doubling could leave the last chunk with twice its maximum size.
  const size_t needed = bytes.size() + 1 + 3 * kMaxVarintBytes + id.size() + fields.size();
  if (needed > bytes.capacity() && needed > kChunkBytes / 2) {
    bytes.reserve(std::max(needed, kChunkBytes));
  }
  char head[1 + 2 * kMaxVarintBytes];
  char* at = put_signed(head, time_ms - chunk.first_ms);
  *at++ = static_cast<char>(type);
  at = put_varint(at, id.size());
  bytes.append(head, static_cast<size_t>(at - head));
  bytes.append(id);
  put_bytes(bytes, fields);
}

bool EventLog::miss() {
  CHECK(count_ == 0);
  if (missed_) return false;
  missed_ = true;
  ++last_seq_;
  return true;
}

void EventLog::trim(const Retention& bounds, int64_t now_ms, size_t limit) {
  if (count_ > bounds.count) {
    const uint64_t over = std::min<uint64_t>(count_ - bounds.count, limit);
    drop(over);
    limit -= over;
  }
  if (bounds.age_ms <= 0) return;
  const int64_t too_old_ms = now_ms - bounds.age_ms;
  while (limit > 0 && count_ > 0 && oldest_ms_ <= too_old_ms) {
    // Times never run backwards, so if the next chunk begins too early, this one need not be read.
    const uint64_t whole = chunks_.front().kept();
    const bool all_old = chunks_.size() > 1 && chunks_[1].first_ms <= too_old_ms;
    const bool gone = (all_old && whole <= limit) || !look_at_oldest();
    if (!gone && oldest_ms_ > too_old_ms) return;
    const uint64_t some = gone ? whole : 1;
    drop(some);
    limit -= std::min<uint64_t>(limit, some);
  }
}

uint64_t EventLog::count_dropped(const Retention& bounds, int64_t now_ms) const {
  const uint64_t over = count_ - std::min(count_, bounds.count);
  const int64_t too_old_ms = now_ms - bounds.age_ms;
  if (bounds.age_ms <= 0 || chunks_.empty() || chunks_.front().first_ms > too_old_ms) return over;
  // Times never run backwards, so only the last chunk that begins early enough is read.
  const auto behind = std::partition_point(chunks_.begin(), chunks_.end(), [&](const Chunk& chunk) {
    return chunk.first_ms <= too_old_ms;
  });
  const Chunk& last = *(behind - 1);
  const uint64_t first_seq = std::max(first_seq_, last.first_seq);
  uint64_t old = first_seq - first_seq_;
  const Looked looked = read(first_seq - 1, [&](const Event& event) {
    if (event.time_ms > too_old_ms) return false;
    ++old;
    return true;
  });
  // trim() drops a chunk that is lost.
  if (looked.lost_seq != 0) old = last.behind() - first_seq_;
  return std::max(over, old);
}

void EventLog::drop(uint64_t count) {
  CHECK(count <= count_);
  count_ -= count;
  first_seq_ += count;
  while (count != 0) {
    Chunk& chunk = chunks_.front();
    if (count < chunk.kept()) {
      chunk.skipped += static_cast<uint32_t>(count);
      Event passed;
      for (; count != 0 && oldest_.has_value(); --count) {
        if (!next(*oldest_, passed)) oldest_.reset();
      }
      return;
    }
    count -= chunk.kept();
    oldest_.reset();
    chunks_.pop_front();
    if (!chunks_.empty()) oldest_ms_ = chunks_.front().first_ms;
  }
}

bool EventLog::look_at_oldest() {
  if (!oldest_.has_value()) oldest_ = seek(first_seq_ - 1);
  Bytes rest;
  if (!bytes_of(*oldest_, rest)) return false;
  rest.remove_prefix(oldest_->offset);
  const Chunk& chunk = chunks_.front();
  Event oldest;
  take_event(rest, chunk.first_ms, oldest);
  oldest_ms_ = oldest.time_ms;
  return true;
}

void EventLog::forget_through(uint64_t seq) {
  if (count_ != 0 && seq >= first_seq_) drop(std::min(count_, seq + 1 - first_seq_));
}

void EventLog::end_replay() {
  if (count_ != 0 && chunks_.front().skipped != 0) look_at_oldest();
}

void EventLog::clear() {
  chunks_.clear();
  oldest_.reset();
  count_ = 0;
  first_seq_ = last_seq_ + 1;
}

int64_t EventLog::oldest_ms() const {
  CHECK(count_ != 0);
  return oldest_ms_;
}

void EventLog::set_last_seq(uint64_t seq) { last_seq_ = std::max(last_seq_, seq); }

void EventLog::follow(uint64_t last_seq, uint64_t kept) {
  if (kept != 0 && last_seq_ <= last_seq - kept) {
    drop(count_ - std::min(count_, kept));
    renumber_from(last_seq + 1 - count_);
  }
  set_last_seq(last_seq);
}

void EventLog::renumber_from(uint64_t seq) {
  CHECK(seq > last_seq_);
  for (Chunk& chunk : chunks_) chunk.first_seq += seq - first_seq_;
  first_seq_ = seq;
  last_seq_ = seq + count_ - 1;
  oldest_.reset();
}

EventLog::Cursor EventLog::seek(uint64_t after) const {
  Cursor cursor;
  if (count_ == 0 || after >= first_seq_ + count_ - 1) {
    cursor.chunk = chunks_.size();
    return cursor;
  }
  const uint64_t wanted = std::max(after + 1, first_seq_);
  if (wanted == first_seq_ + count_ - 1) {
    return {.chunk = chunks_.size() - 1, .seq = wanted, .offset = newest_offset_};
  }
  // The last chunk that begins at or before the wanted event.
  const auto behind =
      std::upper_bound(chunks_.begin(), chunks_.end(), wanted,
                       [](uint64_t seq, const Chunk& chunk) { return seq < chunk.first_seq; });
  const auto at = behind - 1;
  cursor.chunk = static_cast<size_t>(at - chunks_.begin());
  cursor.seq = at->first_seq;
  Event passed;
  while (cursor.seq < wanted && next(cursor, passed)) {
  }
  return cursor;
}

bool EventLog::bytes_of(Cursor& cursor, Bytes& bytes) const {
  const Chunk& chunk = chunks_[cursor.chunk];
  bytes = chunk.bytes;
  if (chunk.spilled == nullptr) return true;
  if (cursor.lost_seq != 0) return false;
  if (cursor.read == nullptr) {
    cursor.read = chunk.spilled->read();
    ++cursor.chunks_read;
  }
  if (cursor.read == nullptr) {
    cursor.lost_seq = chunk.behind() - 1;
    return false;
  }
  bytes = *cursor.read;
  return true;
}

void EventLog::leave_passed(Cursor& cursor) const {
  while (cursor.chunk < chunks_.size() && cursor.seq == chunks_[cursor.chunk].behind()) {
    cursor.go_on(cursor.seq);
  }
}

bool EventLog::must_read(const Cursor& cursor) const {
  return cursor.chunk < chunks_.size() && cursor.read == nullptr &&
         chunks_[cursor.chunk].spilled != nullptr;
}

bool EventLog::next(Cursor& cursor, Event& event) const {
  leave_passed(cursor);
  Bytes rest;
  if (cursor.chunk >= chunks_.size() || !bytes_of(cursor, rest)) return false;
  const Chunk& chunk = chunks_[cursor.chunk];
  const size_t whole = rest.size();
  rest.remove_prefix(cursor.offset);
  take_event(rest, chunk.first_ms, event);
  event.seq = cursor.seq++;
  cursor.offset = whole - rest.size();
  return true;
}

size_t EventLog::skip_chunks(Cursor& cursor, uint32_t types, size_t most) const {
  size_t passed = 0;
  leave_passed(cursor);
  while (cursor.chunk + 1 < chunks_.size()) {
    const Chunk& chunk = chunks_[cursor.chunk];
    const size_t size = chunk.behind() - cursor.seq;
    if ((chunk.types & types) != 0 || passed + size >= most) return passed;
    passed += size;
    // Only the first chunk has trimmed events.
    cursor.go_on(chunk.behind());
  }
  return passed;
}

size_t EventLog::memory_bytes() const {
  size_t bytes = chunks_.size() * sizeof(Chunk);
  for (const Chunk& chunk : chunks_) {
    bytes += chunk.spilled == nullptr ? chunk.bytes.capacity() : chunk.spilled->memory_bytes();
  }
  if (oldest_.has_value() && oldest_->read != nullptr) bytes += oldest_->read->capacity();
  return bytes;
}

void EventFields::add(Bytes name, Bytes value) {
  const size_t room = 2 * kMaxVarintBytes + name.size() + value.size();
  if (many_.empty() && few_size_ + room <= sizeof(few_)) {
    char* const end = put_bytes(put_bytes(few_ + few_size_, name), value);
    few_size_ = static_cast<size_t>(end - few_);
    return;
  }
  if (many_.empty()) many_.assign(few_, few_size_);
  put_bytes(many_, name);
  put_bytes(many_, value);
}

void EventFields::add(Bytes name, int64_t value) {
  char text[kMaxIntegerText];
  add(name, Bytes(text, format_i64(text, value)));
}

bool next_event_field(Bytes& fields, Bytes& name, Bytes& value) {
  return take_bytes(fields, name) && take_bytes(fields, value);
}

}  // namespace sluice
