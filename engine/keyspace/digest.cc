#include "engine/keyspace/digest.h"

#include <cstdio>

#include "engine/base/varint.h"
#include "engine/keyspace/collections.h"
#include "engine/keyspace/stream_records.h"
#include "engine/queue/queue.h"
#include "engine/queue/queue_records.h"
#include "engine/structures/stream.h"

namespace sluice {

void Digest::add(Bytes bytes) {
  const Sha1 other = sha1(bytes);
  for (size_t i = 0; i < sha_.size(); ++i) sha_[i] = static_cast<unsigned char>(sha_[i] ^ other[i]);
}

void Digest::mix(Bytes bytes) {
  add(bytes);
  sha_ = sha1(this->bytes());
}

void Digest::mix_number(uint32_t number) {
  char big_endian[4];
  for (size_t i = 0; i < sizeof(big_endian); ++i) {
    big_endian[i] = static_cast<char>(number >> (24 - 8 * i));
  }
  mix({big_endian, sizeof(big_endian)});
}

std::string Digest::text() const { return std::string(view(hex_of(sha_))); }

namespace {

// Redis's numbers of the types; 5 is a module's.
uint32_t redis_number(Type type) {
  switch (type) {
    case Type::kString:
      return 0;
    case Type::kList:
      return 1;
    case Type::kSet:
      return 2;
    case Type::kSortedSet:
      return 3;
    case Type::kHash:
      return 4;
    case Type::kStream:
      return 6;
    case Type::kQueue:
      return 7;
  }
  CHECK(false);
}

void digest_sorted(const SortedSet& sorted, Digest& digest) {
  for (auto at = sorted.order.begin(); at.valid(); at.next()) {
    char score[40];
    const int size = std::snprintf(score, sizeof(score), "%.17g", at.value()->score());
    Digest member;
    member.mix(at.value()->bytes());
    member.mix({score, static_cast<size_t>(size)});
    digest.add(member.bytes());
  }
}

void digest_hash(const Hash& hash, Digest& digest) {
  hash.fields.for_each([&](const Field* field) {
    Digest pair;
    pair.mix(field->name());
    pair.mix(field->value());
    digest.add(pair.bytes());
  });
}

void digest_stream(const Stream& stream, Digest& digest) {
  stream.each({}, StreamId::max(), [&](const StreamEntry& entry) {
    digest.mix(std::to_string(entry.id().ms) + "." + std::to_string(entry.id().seq));
    entry.each_field([&](Bytes name, Bytes value) {
      digest.mix(name);
      digest.mix(value);
    });
    return true;
  });
}

// Takes from a record of a queue what time alone changes. Returns false if nothing is left.
bool without_time(EffectType type, Bytes& value) {
  uint64_t queue_ms = 0;
  if (type == EffectType::kQueueHead) return take_varint(value, queue_ms);
  if (type == EffectType::kQueueShare) {
    // Behind level and share is the time up to which a rate has given its tokens out. A share of 0
    // may be recorded for that alone.
    constexpr Bytes kNoShare("\0\0\0\0\0\0\0\0", sizeof(double));
    value = value.substr(0, 1 + sizeof(double));
    return value.substr(1) != kNoShare;
  }
  return type != EffectType::kQueueEvents;  // these hold only the bounds
}

void digest_queue(const Queue& queue, Digest& digest) {
  QueueCursor cursor;
  const auto add = [&](EffectType type, Bytes field, Bytes value) {
    if (!without_time(type, value)) return;
    Digest record;
    record.mix_number(static_cast<uint32_t>(type));
    record.mix(field);
    record.mix(value);
    digest.add(record.bytes());
  };
  while (cursor.part != QueueCursor::Part::kEvents && walk_queue(queue, cursor, 256, add)) {
  }
  queue.events.read(0, [&](const Event& event) {
    Digest one;
    one.mix(std::to_string(event.seq));
    one.mix(std::to_string(event.time_ms));
    one.mix_number(static_cast<uint32_t>(event.type));
    one.mix(event.id);
    one.mix(event.fields);
    digest.add(one.bytes());
    return true;
  });
}

// What Redis's digest leaves out of a stream: its numbers and its groups.
void digest_groups(const Stream& stream, Digest& digest) {
  StreamCursor cursor;
  const auto add = [&](EffectType type, Bytes field, Bytes value) {
    if (type == EffectType::kStreamNode) return;
    int64_t seen_ms = 0;  // recorded with the consumer's next pending entries only
    if (type == EffectType::kStreamConsumer && !take_signed(value, seen_ms)) return;
    Digest record;
    record.mix_number(static_cast<uint32_t>(type));
    record.mix(field);
    record.mix(value);
    digest.add(record.bytes());
  };
  while (walk_stream(stream, cursor, SIZE_MAX, add)) {
  }
}

}  // namespace

void digest_rest(const Entry& entry, Digest& digest) {
  if (entry.type() == Type::kStream) digest_groups(entry.object<Stream>(), digest);
  digest.mix(std::to_string(entry.expire_ms()));
}

void digest_value(const Entry& entry, Digest& digest) {
  digest.mix_number(redis_number(entry.type()));
  switch (entry.type()) {
    case Type::kString:
      digest.mix(entry.string());
      break;
    case Type::kList:
      for (auto at = entry.object<List>().items.begin(); at.valid(); at.next()) {
        digest.mix(at.value());
      }
      break;
    case Type::kSet:
      entry.object<Set>().members.for_each(
          [&](const Member* member) { digest.add(member->bytes()); });
      break;
    case Type::kSortedSet:
      digest_sorted(entry.object<SortedSet>(), digest);
      break;
    case Type::kHash:
      digest_hash(entry.object<Hash>(), digest);
      break;
    case Type::kStream:
      digest_stream(entry.object<Stream>(), digest);
      break;
    case Type::kQueue:
      digest_queue(entry.object<Queue>(), digest);
      break;
  }
  if (entry.expire_ms() != 0) digest.add("!!expire!!");
}

}  // namespace sluice
