// Encoding of values, each in the encoding of redis-server 7.0.15.
#include <algorithm>

#include "engine/base/numbers.h"
#include "engine/keyspace/collections.h"
#include "engine/rdb/crc64.h"
#include "engine/rdb/format.h"
#include "engine/rdb/packed.h"
#include "engine/rdb/stream_value.h"
#include "engine/rdb/value.h"
#include "engine/rdb/writer.h"

namespace sluice::rdb {

namespace {

// Integers with longer texts need more than 32 bits.
constexpr size_t kMaxEncodedInteger = 11;
// A node of a quicklist: list-max-listpack-size -2.
constexpr size_t kMaxNodeBytes = 8192;
constexpr char kPackedNode = 2;

bool put_integer(std::string& to, Bytes text) {
  if (text.size() > kMaxEncodedInteger) return false;
  const auto value = parse_i64(text);
  if (!value || *value < INT32_MIN || *value > INT32_MAX) return false;
  const size_t encoding = *value == static_cast<int8_t>(*value)    ? 0
                          : *value == static_cast<int16_t>(*value) ? 1
                                                                   : 2;
  to += static_cast<char>(0xc0 | encoding);
  put_number(to, static_cast<uint64_t>(*value), size_t{1} << encoding);
  return true;
}

}  // namespace

void put_length(std::string& to, uint64_t length) {
  size_t width = 0;  // of the big-endian number that follows
  if (length < 64) {
    to += static_cast<char>(length);
  } else if (length < 16384) {
    to += static_cast<char>(0x40 | length >> 8);
    width = 1;
  } else if (length <= UINT32_MAX) {
    to += static_cast<char>(0x80);
    width = 4;
  } else {
    to += static_cast<char>(0x81);
    width = 8;
  }
  for (; width != 0; --width) to += static_cast<char>(length >> 8 * (width - 1));
}

void put_string(std::string& to, Bytes text) {
  if (put_integer(to, text)) return;
  put_length(to, text.size());
  to += text;
}

namespace {

void put_score(std::string& to, double score) {
  uint64_t raw = 0;
  std::memcpy(&raw, &score, sizeof(raw));
  put_number(to, raw, sizeof(raw));
}

void put_list(std::string& to, const List& list) {
  std::vector<std::string> nodes;
  ListpackWriter writer;
  for (auto at = list.items.begin(); at.valid(); at.next()) {
    const bool full = writer.size_with(at.value().size()) > kMaxNodeBytes;
    if (full && writer.count() != 0) nodes.push_back(writer.take());
    writer.append(at.value());
  }
  nodes.push_back(writer.take());
  to += static_cast<char>(kListQuicklist2);
  put_length(to, nodes.size());
  for (const std::string& node : nodes) {
    to += kPackedNode;
    put_string(to, node);
  }
}

void put_set(std::string& to, const Set& set) {
  if (set.intset) {
    std::vector<int64_t> values;
    set.members.for_each(
        [&](const Member* member) { values.push_back(*parse_i64(member->bytes())); });
    std::sort(values.begin(), values.end());
    to += static_cast<char>(kSetIntset);
    return put_string(to, write_intset(values));
  }
  to += static_cast<char>(kSet);
  put_length(to, set.members.size());
  set.members.for_each([&](const Member* member) { put_string(to, member->bytes()); });
}

void put_hash(std::string& to, const Hash& hash) {
  if (hash.listpack) {
    ListpackWriter writer;
    hash.fields.for_each([&](const Field* field) {
      writer.append(field->name());
      writer.append(field->value());
    });
    to += static_cast<char>(kHashListpack);
    return put_string(to, writer.take());
  }
  to += static_cast<char>(kHash);
  put_length(to, hash.fields.size());
  hash.fields.for_each([&](const Field* field) {
    put_string(to, field->name());
    put_string(to, field->value());
  });
}

// In a listpack Redis writes every whole number of up to 62 bits as an integer.
std::string score_text(double score) {
  constexpr auto kLargest = static_cast<double>(INT64_MAX / 2);
  if (score < -kLargest || score > kLargest) return format_double(score);
  const auto whole = static_cast<int64_t>(score);
  return static_cast<double>(whole) == score ? std::to_string(whole) : format_double(score);
}

void put_sorted(std::string& to, const SortedSet& sorted) {
  if (sorted.listpack) {
    ListpackWriter writer;
    for (auto at = sorted.order.begin(); at.valid(); at.next()) {
      writer.append(at.value()->bytes());
      writer.append(score_text(at.value()->score()));
    }
    to += static_cast<char>(kSortedListpack);
    return put_string(to, writer.take());
  }
  // From the last to the first, like Redis: loading then inserts at the front of a skip list.
  std::vector<const ScoredMember*> members;
  for (auto at = sorted.order.begin(); at.valid(); at.next()) members.push_back(at.value());
  to += static_cast<char>(kSorted);
  put_length(to, members.size());
  for (size_t i = members.size(); i != 0; --i) {
    put_string(to, members[i - 1]->bytes());
    put_score(to, members[i - 1]->score());
  }
}

}  // namespace

bool can_write(Type type) { return type != Type::kQueue; }

void put_footer(std::string& payload) {
  put_number(payload, kVersion, sizeof(kVersion));
  put_number(payload, crc64(payload), sizeof(uint64_t));
}

std::string write_payload(const Entry& entry) {
  std::string payload;
  switch (entry.type()) {
    case Type::kString:
      payload += static_cast<char>(kString);
      put_string(payload, entry.string());
      break;
    case Type::kList:
      put_list(payload, entry.object<List>());
      break;
    case Type::kSet:
      put_set(payload, entry.object<Set>());
      break;
    case Type::kSortedSet:
      put_sorted(payload, entry.object<SortedSet>());
      break;
    case Type::kHash:
      put_hash(payload, entry.object<Hash>());
      break;
    case Type::kStream:
      put_stream(payload, entry.object<Stream>());
      break;
    case Type::kQueue:
      CHECK(false && "no payload of this type");
  }
  put_footer(payload);
  return payload;
}

}  // namespace sluice::rdb
