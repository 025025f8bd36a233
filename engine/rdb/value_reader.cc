// Decoding of values.
#include <cmath>

#include "engine/base/numbers.h"
#include "engine/keyspace/collections.h"
#include "engine/keyspace/database.h"
#include "engine/rdb/crc64.h"
#include "engine/rdb/format.h"
#include "engine/rdb/packed.h"
#include "engine/rdb/reader.h"
#include "engine/rdb/stream_value.h"
#include "engine/rdb/value.h"

namespace sluice::rdb {

namespace {

constexpr size_t kFooterBytes = 10;  // version u16, CRC u64

using ReadPacked = bool (*)(Bytes packed, const TakeElement& take);
using TakePair = std::function<bool(Bytes first, Bytes second)>;

bool read_texts(Reader& from, uint64_t count, const TakeElement& take) {
  for (; count != 0; --count) {
    Bytes text;
    if (!from.string(text) || !take(text)) return false;
  }
  return true;
}

bool read_packed(Reader& from, ReadPacked read, const TakeElement& take) {
  Bytes packed;
  return from.string(packed) && read(packed, take);
}

bool read_quicklist(Reader& from, bool listpacks, const TakeElement& take) {
  constexpr uint64_t kPlain = 1;
  constexpr uint64_t kPacked = 2;
  uint64_t nodes = 0;
  if (!from.count(1, nodes)) return false;
  for (; nodes != 0; --nodes) {
    uint64_t container = kPacked;
    if (listpacks && !from.length(container)) return false;
    if (container == kPlain) {
      if (!read_texts(from, 1, take)) return false;
    } else if (container != kPacked ||
               !read_packed(from, listpacks ? read_listpack : read_ziplist, take)) {
      return false;
    }
  }
  return true;
}

// Passes on the elements of a list, a set or a hash, or those of a packed sorted set.
bool read_elements(uint8_t type, Reader& from, const TakeElement& take) {
  uint64_t count = 0;
  switch (type) {
    case kList:
    case kSet:
      return from.count(1, count) && read_texts(from, count, take);
    case kHash:
      return from.count(2, count) && read_texts(from, 2 * count, take);
    case kListQuicklist:
    case kListQuicklist2:
      return read_quicklist(from, type == kListQuicklist2, take);
    case kListZiplist:
    case kHashZiplist:
    case kSortedZiplist:
      return read_packed(from, read_ziplist, take);
    case kHashListpack:
    case kSortedListpack:
      return read_packed(from, read_listpack, take);
    case kSetIntset:
      return read_packed(from, read_intset, take);
    case kHashZipmap:
      return read_packed(from, read_zipmap, take);
    default:
      return false;
  }
}

// The same in pairs.
bool read_pairs(uint8_t type, Reader& from, const TakePair& take) {
  std::string first;
  bool has_first = false;
  const bool whole = read_elements(type, from, [&](Bytes element) {
    has_first = !has_first;
    if (!has_first) return take(first, element);
    first = element;
    return true;
  });
  return whole && !has_first;
}

bool read_list(uint8_t type, Reader& from, List& list) {
  const bool whole = read_elements(type, from, [&](Bytes item) {
    if (item.size() >= PackedList::kMaxElementBytes) return false;
    list.items.push_back(item);
    return true;
  });
  return whole && !list.items.empty();
}

bool read_set(uint8_t type, Reader& from, Set& set) {
  const bool whole = read_elements(type, from, [&](Bytes member) {
    const uint64_t hash = hash_bytes(member);
    if (set.members.find(member, hash) != nullptr) return false;
    set.members.insert(Member::make(member), hash);
    set.intset = set.intset && fits_intset(set, member);
    return true;
  });
  return whole && !set.members.empty();
}

bool read_hash(uint8_t type, Reader& from, Hash& hash) {
  const bool whole = read_pairs(type, from, [&](Bytes name, Bytes value) {
    const uint64_t name_hash = hash_bytes(name);
    if (hash.fields.find(name, name_hash) != nullptr) return false;
    hash.fields.insert(Field::make(name, value), name_hash);
    hash.listpack = hash.listpack && fits_listpack(hash, name, value);
    return true;
  });
  return whole && !hash.fields.empty();
}

bool read_scores(Reader& from, bool binary, const std::function<bool(Bytes, double)>& take) {
  uint64_t count = 0;
  if (!from.count(2, count)) return false;
  std::string member;
  for (; count != 0; --count) {
    Bytes text;
    double score = 0;
    if (!from.string(text)) return false;
    member = text;
    if (!(binary ? from.binary_double(score) : from.text_double(score))) return false;
    if (!take(member, score)) return false;
  }
  return true;
}

// A listpack has no negative zero.
void drop_negative_zeros(SortedSet& sorted) {
  sorted.members.for_each([&](ScoredMember* member) {
    if (member->score() != 0 || !std::signbit(member->score())) return;
    const uint64_t minor = SortedSet::minor(member->bytes());
    const bool was_there = sorted.order.erase(SortedSet::major(member->score()), minor, member);
    CHECK(was_there);
    member->set_score(0);
    sorted.order.insert(SortedSet::major(0), minor, member);
  });
}

bool read_sorted(uint8_t type, Reader& from, SortedSet& sorted) {
  const auto take = [&](Bytes bytes, double score) {
    const uint64_t hash = hash_bytes(bytes);
    if (sorted.members.find(bytes, hash) != nullptr) return false;
    ScoredMember* member = ScoredMember::make(bytes, score);
    sorted.members.insert(member, hash);
    sorted.order.insert(SortedSet::major(score), SortedSet::minor(bytes), member);
    sorted.listpack = sorted.listpack && fits_listpack(sorted, bytes);
    return true;
  };
  const bool whole = type == kSorted || type == kSortedText
                         ? read_scores(from, type == kSorted, take)
                         : read_pairs(type, from, [&](Bytes member, Bytes text) {
                             const auto score = parse_double(text);
                             return score && take(member, *score);
                           });
  // Redis chooses the encoding from the complete value.
  if (sorted.listpack) drop_negative_zeros(sorted);
  return whole && !sorted.members.empty();
}

std::optional<Type> type_of(uint8_t type) {
  switch (type) {
    case kList:
    case kListZiplist:
    case kListQuicklist:
    case kListQuicklist2:
      return Type::kList;
    case kSet:
    case kSetIntset:
      return Type::kSet;
    case kSorted:
    case kSortedText:
    case kSortedZiplist:
    case kSortedListpack:
      return Type::kSortedSet;
    case kHash:
    case kHashZipmap:
    case kHashZiplist:
    case kHashListpack:
      return Type::kHash;
    case kStreamListpacks:
    case kStreamListpacks2:
      return Type::kStream;
    default:
      return std::nullopt;
  }
}

bool fill(uint8_t type, Reader& from, const Entry& entry) {
  switch (entry.type()) {
    case Type::kList:
      return read_list(type, from, entry.object<List>());
    case Type::kSet:
      return read_set(type, from, entry.object<Set>());
    case Type::kSortedSet:
      return read_sorted(type, from, entry.object<SortedSet>());
    case Type::kHash:
      return read_hash(type, from, entry.object<Hash>());
    default:
      return read_stream(type, from, entry.object<Stream>());
  }
}

}  // namespace

OwnedEntry read_value(uint8_t type, Reader& from, Bytes key) {
  if (type == kString) {
    Bytes text;
    return OwnedEntry(from.string(text) ? Entry::make_string(key, text, 0) : nullptr);
  }
  const auto made = type_of(type);
  if (!made) return nullptr;
  OwnedEntry entry(Entry::make_object(key, *made, make_collection(*made)));
  if (!fill(type, from, *entry)) entry.reset();
  return entry;
}

Bytes foreign_type_name(uint8_t type) {
  switch (type) {
    case 6:
    case 7:
      return "a module's value";
    case 20:
      return "a set as a listpack (Redis 7.2)";
    case 21:
      return "a stream (Redis 7.2)";
    case 22:
    case 23:
    case 24:
    case 25:
      return "a hash whose fields expire (Redis 7.4)";
    default:
      return {};
  }
}

std::optional<Bytes> check_footer(Bytes payload) {
  if (payload.size() < kFooterBytes) return std::nullopt;
  const Bytes content = payload.substr(0, payload.size() - kFooterBytes);
  Reader footer(payload.substr(content.size()), kFooterBytes);
  uint64_t version = 0;
  uint64_t crc = 0;
  footer.number(2, version);
  footer.number(8, crc);
  const bool right =
      version <= kVersion && crc == crc64(payload.substr(0, payload.size() - sizeof(crc)));
  return right ? std::optional(content) : std::nullopt;
}

PayloadFault read_payload(Bytes payload, uint64_t max_string_bytes, Bytes key, OwnedEntry& value) {
  const auto content = check_footer(payload);
  if (!content) return PayloadFault::kFooter;
  Reader from(*content, max_string_bytes);
  uint8_t type = 0;
  if (from.byte(type)) value = read_value(type, from, key);
  return value != nullptr ? PayloadFault::kNone : PayloadFault::kData;
}

}  // namespace sluice::rdb
