// Decoding of values.
#include <cmath>
#include <unordered_set>

#include "engine/base/numbers.h"
#include "engine/rdb/crc64.h"
#include "engine/rdb/format.h"
#include "engine/rdb/packed.h"
#include "engine/rdb/reader.h"
#include "engine/rdb/value.h"

namespace sluice::rdb {

namespace {

constexpr size_t kFooterBytes = 10;  // version u16, CRC u64

using Texts = std::vector<std::string>;
using ReadPacked = bool (*)(Bytes packed, Texts& out);

bool all_differ(const Texts& texts, size_t step) {
  std::unordered_set<Bytes> seen;
  for (size_t i = 0; i < texts.size(); i += step) {
    if (!seen.insert(texts[i]).second) return false;
  }
  return true;
}

bool read_texts(Reader& from, uint64_t count, Texts& out) {
  for (; count != 0; --count) {
    std::string text;
    if (!from.string(text)) return false;
    out.push_back(std::move(text));
  }
  return true;
}

bool read_packed(Reader& from, ReadPacked read, Texts& out) {
  std::string packed;
  return from.string(packed) && read(packed, out);
}

bool read_quicklist(Reader& from, bool listpacks, Texts& out) {
  constexpr uint64_t kPlain = 1;
  constexpr uint64_t kPacked = 2;
  uint64_t nodes = 0;
  if (!from.count(1, nodes)) return false;
  for (; nodes != 0; --nodes) {
    uint64_t container = kPacked;
    if (listpacks && !from.length(container)) return false;
    if (container == kPlain) {
      if (!read_texts(from, 1, out)) return false;
    } else if (container != kPacked ||
               !read_packed(from, listpacks ? read_listpack : read_ziplist, out)) {
      return false;
    }
  }
  return true;
}

bool take_fields(Texts& texts, Value& value) {
  value.type = Type::kHash;
  if (texts.empty() || texts.size() % 2 != 0 || !all_differ(texts, 2)) return false;
  for (size_t i = 0; i < texts.size(); i += 2) {
    value.fields.emplace_back(std::move(texts[i]), std::move(texts[i + 1]));
  }
  return true;
}

bool take_scored(Texts& texts, Value& value) {
  value.type = Type::kSortedSet;
  if (texts.empty() || texts.size() % 2 != 0 || !all_differ(texts, 2)) return false;
  for (size_t i = 0; i < texts.size(); i += 2) {
    const auto score = parse_double(texts[i + 1]);
    if (!score) return false;
    value.scored.emplace_back(std::move(texts[i]), *score);
  }
  return true;
}

bool take_items(Texts& texts, Type type, Value& value) {
  value.type = type;
  value.items = std::move(texts);
  if (value.items.empty()) return false;
  return type != Type::kSet || all_differ(value.items, 1);
}

bool read_scored(Reader& from, bool binary, Value& value) {
  value.type = Type::kSortedSet;
  uint64_t count = 0;
  if (!from.count(2, count) || count == 0) return false;
  std::unordered_set<std::string> seen;
  for (; count != 0; --count) {
    std::string member;
    double score = 0;
    if (!from.string(member) || !(binary ? from.binary_double(score) : from.text_double(score))) {
      return false;
    }
    if (!seen.insert(member).second) return false;
    value.scored.emplace_back(std::move(member), score);
  }
  return true;
}

}  // namespace

bool read_value(uint8_t type, Reader& from, Value& value) {
  Texts texts;
  uint64_t count = 0;
  switch (type) {
    case kString:
      value.type = Type::kString;
      return from.string(value.string);
    case kList:
    case kSet:
      return from.count(1, count) && read_texts(from, count, texts) &&
             take_items(texts, type == kList ? Type::kList : Type::kSet, value);
    case kHash:
      return from.count(2, count) && read_texts(from, 2 * count, texts) &&
             take_fields(texts, value);
    case kSorted:
    case kSortedText:
      return read_scored(from, type == kSorted, value);
    case kListQuicklist:
    case kListQuicklist2:
      return read_quicklist(from, type == kListQuicklist2, texts) &&
             take_items(texts, Type::kList, value);
    case kListZiplist:
      return read_packed(from, read_ziplist, texts) && take_items(texts, Type::kList, value);
    case kSetIntset:
      return read_packed(from, read_intset, texts) && take_items(texts, Type::kSet, value);
    case kHashZipmap:
      return read_packed(from, read_zipmap, texts) && take_fields(texts, value);
    case kHashZiplist:
      return read_packed(from, read_ziplist, texts) && take_fields(texts, value);
    case kHashListpack:
      return read_packed(from, read_listpack, texts) && take_fields(texts, value);
    case kSortedZiplist:
      return read_packed(from, read_ziplist, texts) && take_scored(texts, value);
    case kSortedListpack:
      return read_packed(from, read_listpack, texts) && take_scored(texts, value);
    default:
      return false;
  }
}

PayloadFault read_payload(Bytes payload, uint64_t max_string_bytes, Value& value) {
  if (payload.size() < kFooterBytes) return PayloadFault::kFooter;
  Reader footer(payload.substr(payload.size() - kFooterBytes), kFooterBytes);
  uint64_t version = 0;
  uint64_t crc = 0;
  footer.number(2, version);
  footer.number(8, crc);
  if (version > kVersion || crc != crc64(payload.substr(0, payload.size() - sizeof(crc)))) {
    return PayloadFault::kFooter;
  }
  Reader from(payload.substr(0, payload.size() - kFooterBytes), max_string_bytes);
  uint8_t type = 0;
  return from.byte(type) && read_value(type, from, value) ? PayloadFault::kNone
                                                          : PayloadFault::kData;
}

}  // namespace sluice::rdb
