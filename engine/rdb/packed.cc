#include "engine/rdb/packed.h"

#include <algorithm>
#include <array>

#include "engine/base/numbers.h"
#include "engine/rdb/format.h"
#include "engine/rdb/reader.h"

namespace sluice::rdb {

namespace {

constexpr uint8_t kEnd = 0xff;
constexpr size_t kListpackHeader = 6;  // total bytes u32, elements u16
constexpr uint64_t kUnknownCount = 0xffff;

uint8_t byte_at(Bytes bytes, size_t at) { return static_cast<uint8_t>(bytes[at]); }

int64_t sign_extended(uint64_t value, unsigned bits) {
  const unsigned shift = 64 - bits;
  return static_cast<int64_t>(value << shift) >> shift;
}

bool take_integer(Reader& from, size_t width, std::string& element) {
  uint64_t raw = 0;
  if (!from.number(width, raw)) return false;
  element = std::to_string(sign_extended(raw, static_cast<unsigned>(8 * width)));
  return true;
}

bool take_text(Reader& from, uint64_t size, std::string& element) {
  Bytes text;
  if (!from.bytes(size, text)) return false;
  element = text;
  return true;
}

// Seven bits a byte, the last one (in memory) lowest; all but the first say that more stand before.
std::string back_length(size_t size) {
  // The limits are those of Redis, one short of what would fit.
  const size_t width = size <= 127        ? 1
                       : size < 16383     ? 2
                       : size < 2097151   ? 3
                       : size < 268435455 ? 4
                                          : 5;
  std::string bytes(width, '\0');
  for (size_t i = 0; i < width; ++i) {
    const size_t group = size >> 7 * (width - 1 - i) & 0x7f;
    bytes[i] = static_cast<char>(i == 0 ? group : group | 0x80);
  }
  return bytes;
}

// One entry of a listpack without its length at the end.
bool take_listpack_entry(Reader& from, uint8_t first, std::string& element) {
  uint64_t more = 0;
  if (first < 0x80) {
    element = std::to_string(first);
    return true;
  }
  if (first < 0xc0) return take_text(from, first & 0x3f, element);
  if (first < 0xe0) {
    if (!from.number(1, more)) return false;
    element = std::to_string(sign_extended((first & 0x1fU) << 8 | more, 13));
    return true;
  }
  if (first < 0xf0)
    return from.number(1, more) && take_text(from, (first & 0xfU) << 8 | more, element);
  switch (first) {
    case 0xf0:
      return from.number(4, more) && take_text(from, more, element);
    case 0xf1:
      return take_integer(from, 2, element);
    case 0xf2:
      return take_integer(from, 3, element);
    case 0xf3:
      return take_integer(from, 4, element);
    case 0xf4:
      return take_integer(from, 8, element);
    default:
      return false;
  }
}

}  // namespace

bool read_listpack(Bytes packed, std::vector<std::string>& out) {
  Reader from(packed, packed.size());
  uint64_t total = 0;
  uint64_t count = 0;
  if (!from.number(4, total) || !from.number(2, count) || total != packed.size()) return false;
  const size_t begin_count = out.size();
  for (;;) {
    const size_t before = from.rest().size();
    uint8_t first = 0;
    if (!from.byte(first)) return false;
    if (first == kEnd) break;
    std::string element;
    if (!take_listpack_entry(from, first, element)) return false;
    const std::string expected = back_length(before - from.rest().size());
    Bytes found;
    if (!from.bytes(expected.size(), found) || found != expected) return false;
    out.push_back(std::move(element));
  }
  return from.rest().empty() && (count == kUnknownCount || count == out.size() - begin_count);
}

namespace {

bool take_ziplist_entry(Reader& from, std::string& element) {
  uint8_t first = 0;
  uint64_t more = 0;
  if (!from.byte(first)) return false;
  if (first < 0x40) return take_text(from, first, element);
  if (first < 0x80)
    return from.number(1, more) && take_text(from, (first & 0x3fU) << 8 | more, element);
  if (first >= 0xf1 && first <= 0xfd) {
    element = std::to_string((first & 0xf) - 1);
    return true;
  }
  switch (first) {
    case 0x80: {
      // The one number here whose most significant byte comes first.
      Bytes size;
      if (!from.bytes(4, size)) return false;
      for (size_t i = 0; i < 4; ++i) more = more << 8 | byte_at(size, i);
      return take_text(from, more, element);
    }
    case 0xc0:
      return take_integer(from, 2, element);
    case 0xd0:
      return take_integer(from, 4, element);
    case 0xe0:
      return take_integer(from, 8, element);
    case 0xf0:
      return take_integer(from, 3, element);
    case 0xfe:
      return take_integer(from, 1, element);
    default:
      return false;
  }
}

}  // namespace

bool read_ziplist(Bytes packed, std::vector<std::string>& out) {
  Reader from(packed, packed.size());
  uint64_t total = 0;
  uint64_t tail = 0;
  uint64_t count = 0;
  if (!from.number(4, total) || !from.number(4, tail) || !from.number(2, count)) return false;
  if (total != packed.size()) return false;
  const size_t begin_count = out.size();
  uint64_t previous_size = 0;
  for (;;) {
    const size_t before = from.rest().size();
    uint8_t first = 0;
    if (!from.byte(first)) return false;
    if (first == kEnd) break;
    // The size of the entry before: one byte, or 254 and four.
    uint64_t previous = first;
    if (first == 254 && !from.number(4, previous)) return false;
    std::string element;
    if (previous != previous_size || !take_ziplist_entry(from, element)) return false;
    previous_size = before - from.rest().size();
    out.push_back(std::move(element));
  }
  return from.rest().empty() && (count == kUnknownCount || count == out.size() - begin_count);
}

bool read_intset(Bytes packed, std::vector<std::string>& out) {
  Reader from(packed, packed.size());
  uint64_t width = 0;
  uint64_t count = 0;
  if (!from.number(4, width) || !from.number(4, count)) return false;
  if ((width != 2 && width != 4 && width != 8) || count * width != from.rest().size()) return false;
  for (; count != 0; --count) {
    std::string element;
    if (!take_integer(from, width, element)) return false;
    out.push_back(std::move(element));
  }
  return true;
}

bool read_zipmap(Bytes packed, std::vector<std::string>& out) {
  Reader from(packed, packed.size());
  uint8_t count = 0;  // of pairs; 254 and more: unknown
  if (!from.byte(count)) return false;
  const size_t begin_count = out.size();
  bool is_value = false;
  for (;;) {
    uint8_t first = 0;
    if (!from.byte(first)) return false;
    if (first == kEnd) break;
    uint64_t size = first;
    if (first == 254 && !from.number(4, size)) return false;
    uint8_t unused = 0;  // bytes behind a value
    if (is_value && !from.byte(unused)) return false;
    std::string element;
    Bytes skipped;
    if (!take_text(from, size, element) || !from.bytes(unused, skipped)) return false;
    out.push_back(std::move(element));
    is_value = !is_value;
  }
  const size_t pairs = (out.size() - begin_count) / 2;
  return !is_value && from.rest().empty() && (count >= 254 || count == pairs);
}

// --- Writing ---

ListpackWriter::ListpackWriter() : bytes_(kListpackHeader, '\0') {}

void ListpackWriter::append(Bytes element) {
  const size_t begin = bytes_.size();
  const auto integer = parse_i64(element);
  if (integer) {
    append_integer(*integer);
  } else {
    const size_t size = element.size();
    if (size < 64) {
      bytes_ += static_cast<char>(0x80 | size);
    } else if (size < 4096) {
      bytes_ += static_cast<char>(0xe0 | size >> 8);
      bytes_ += static_cast<char>(size);
    } else {
      bytes_ += static_cast<char>(0xf0);
      put_number(bytes_, size, 4);
    }
    bytes_ += element;
  }
  end_entry(begin);
}

void ListpackWriter::append_integer(int64_t value) {
  const auto raw = static_cast<uint64_t>(value);
  if (value >= 0 && value <= 127) {
    bytes_ += static_cast<char>(raw);
    return;
  }
  if (value >= -4096 && value <= 4095) {
    bytes_ += static_cast<char>(0xc0 | (raw >> 8 & 0x1f));
    bytes_ += static_cast<char>(raw);
    return;
  }
  constexpr std::array<size_t, 4> kWidths = {2, 3, 4, 8};
  for (size_t i = 0; i < kWidths.size(); ++i) {
    const auto bits = static_cast<unsigned>(8 * kWidths[i]);
    if (sign_extended(raw, bits) != value) continue;
    bytes_ += static_cast<char>(0xf1 + i);
    put_number(bytes_, raw, kWidths[i]);
    return;
  }
}

void ListpackWriter::end_entry(size_t begin) {
  bytes_ += back_length(bytes_.size() - begin);
  ++count_;
}

std::string ListpackWriter::take() {
  bytes_ += static_cast<char>(kEnd);
  std::string header;
  put_number(header, bytes_.size(), 4);
  put_number(header, std::min<uint64_t>(count_, kUnknownCount), 2);
  bytes_.replace(0, kListpackHeader, header);
  std::string whole = std::move(bytes_);
  bytes_.assign(kListpackHeader, '\0');
  count_ = 0;
  return whole;
}

std::string write_intset(const std::vector<int64_t>& values) {
  size_t width = 2;
  for (const int64_t value : values) {
    while (sign_extended(static_cast<uint64_t>(value), static_cast<unsigned>(8 * width)) != value) {
      width *= 2;
    }
  }
  std::string bytes;
  put_number(bytes, width, 4);
  put_number(bytes, values.size(), 4);
  for (const int64_t value : values) put_number(bytes, static_cast<uint64_t>(value), width);
  return bytes;
}

}  // namespace sluice::rdb
