#include "engine/rdb/packed.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "engine/base/numbers.h"
#include "engine/rdb/format.h"

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

bool take_integer(Reader& from, size_t width, NumberText& number, Bytes& element) {
  uint64_t raw = 0;
  if (!from.number(width, raw)) return false;
  element = number.set(sign_extended(raw, static_cast<unsigned>(8 * width)));
  return true;
}

// The length after an entry of a listpack: seven bits a byte, the last byte (in memory) lowest. All
// bytes but the first say that more precede.
class BackLength {
 public:
  explicit BackLength(size_t size) {
    // The limits are those of Redis, one less than would fit.
    width_ = size <= 127 ? 1 : size < 16383 ? 2 : size < 2097151 ? 3 : size < 268435455 ? 4 : 5;
    for (size_t i = 0; i < width_; ++i) {
      const size_t group = size >> 7 * (width_ - 1 - i) & 0x7f;
      bytes_[i] = static_cast<char>(i == 0 ? group : group | 0x80);
    }
  }
  Bytes bytes() const { return {bytes_.data(), width_}; }

 private:
  std::array<char, 5> bytes_;
  size_t width_;
};

// Takes one entry of a listpack without the length at its end.
bool take_listpack_entry(Reader& from, uint8_t first, NumberText& number, Bytes& element) {
  uint64_t more = 0;
  if (first < 0x80) {
    element = number.set(first);
    return true;
  }
  if (first < 0xc0) return from.bytes(first & 0x3f, element);
  if (first < 0xe0) {
    if (!from.number(1, more)) return false;
    element = number.set(sign_extended((first & 0x1fU) << 8 | more, 13));
    return true;
  }
  if (first < 0xf0) return from.number(1, more) && from.bytes((first & 0xfU) << 8 | more, element);
  switch (first) {
    case 0xf0:
      return from.number(4, more) && from.bytes(more, element);
    case 0xf1:
      return take_integer(from, 2, number, element);
    case 0xf2:
      return take_integer(from, 3, number, element);
    case 0xf3:
      return take_integer(from, 4, number, element);
    case 0xf4:
      return take_integer(from, 8, number, element);
    default:
      return false;
  }
}

}  // namespace

Bytes NumberText::set(int64_t number) {
  const auto end = std::to_chars(text_.data(), text_.data() + text_.size(), number).ptr;
  return {text_.data(), static_cast<size_t>(end - text_.data())};
}

ListpackReader::ListpackReader(Bytes packed) : from_(packed, packed.size()), size_(packed.size()) {
  uint64_t total = 0;
  good_ = from_.number(4, total) && from_.number(2, count_) && total == packed.size();
}

bool ListpackReader::next(Bytes& element) {
  const Bytes rest = from_.rest();
  if (!good_ || rest.empty()) return good_ = false;
  const auto first = static_cast<uint8_t>(rest[0]);
  if (first == kEnd) return false;
  uint8_t taken = 0;
  Bytes found;
  good_ = from_.byte(taken) && take_listpack_entry(from_, first, number_, element);
  if (!good_) return false;
  const BackLength expected(rest.size() - from_.rest().size());
  good_ = from_.bytes(expected.bytes().size(), found) && found == expected.bytes();
  ++taken_;
  return good_;
}

bool ListpackReader::next(int64_t& number) {
  Bytes element;
  if (!next(element)) return false;
  const auto parsed = parse_i64(element);
  number = parsed.value_or(0);
  return good_ = parsed.has_value();
}

bool ListpackReader::is_whole() {
  return good_ && from_.rest().size() == 1 && static_cast<uint8_t>(from_.rest()[0]) == kEnd &&
         (count_ == kUnknownCount || count_ == taken_);
}

bool read_listpack(Bytes packed, const TakeElement& take) {
  ListpackReader from(packed);
  Bytes element;
  while (from.next(element)) {
    if (!take(element)) return false;
  }
  return from.is_whole();
}

namespace {

bool take_ziplist_entry(Reader& from, NumberText& number, Bytes& element) {
  uint8_t first = 0;
  uint64_t more = 0;
  if (!from.byte(first)) return false;
  if (first < 0x40) return from.bytes(first, element);
  if (first < 0x80) return from.number(1, more) && from.bytes((first & 0x3fU) << 8 | more, element);
  if (first >= 0xf1 && first <= 0xfd) {
    element = number.set((first & 0xf) - 1);
    return true;
  }
  switch (first) {
    case 0x80: {
      // The only number here with the most significant byte first.
      Bytes size;
      if (!from.bytes(4, size)) return false;
      for (size_t i = 0; i < 4; ++i) more = more << 8 | byte_at(size, i);
      return from.bytes(more, element);
    }
    case 0xc0:
      return take_integer(from, 2, number, element);
    case 0xd0:
      return take_integer(from, 4, number, element);
    case 0xe0:
      return take_integer(from, 8, number, element);
    case 0xf0:
      return take_integer(from, 3, number, element);
    case 0xfe:
      return take_integer(from, 1, number, element);
    default:
      return false;
  }
}

}  // namespace

bool read_ziplist(Bytes packed, const TakeElement& take) {
  Reader from(packed, packed.size());
  uint64_t total = 0;
  uint64_t tail = 0;
  uint64_t count = 0;
  if (!from.number(4, total) || !from.number(4, tail) || !from.number(2, count)) return false;
  if (total != packed.size()) return false;
  uint64_t taken = 0;
  uint64_t previous_size = 0;
  NumberText number;
  for (;; ++taken) {
    const size_t before = from.rest().size();
    uint8_t first = 0;
    if (!from.byte(first)) return false;
    if (first == kEnd) break;
    // The size of the previous entry: one byte, or 254 and four bytes.
    uint64_t previous = first;
    if (first == 254 && !from.number(4, previous)) return false;
    Bytes element;
    if (previous != previous_size || !take_ziplist_entry(from, number, element)) return false;
    previous_size = before - from.rest().size();
    if (!take(element)) return false;
  }
  return from.rest().empty() && (count == kUnknownCount || count == taken);
}

bool read_intset(Bytes packed, const TakeElement& take) {
  Reader from(packed, packed.size());
  uint64_t width = 0;
  uint64_t count = 0;
  if (!from.number(4, width) || !from.number(4, count)) return false;
  if ((width != 2 && width != 4 && width != 8) || count * width != from.rest().size()) return false;
  NumberText number;
  std::optional<int64_t> previous;
  for (; count != 0; --count) {
    Bytes element;
    if (!take_integer(from, width, number, element)) return false;
    const auto value = parse_i64(element);
    if (value <= previous || !take(element)) return false;
    previous = value;
  }
  return true;
}

bool read_zipmap(Bytes packed, const TakeElement& take) {
  Reader from(packed, packed.size());
  uint8_t count = 0;  // of pairs; 254 and more: unknown
  if (!from.byte(count)) return false;
  uint64_t taken = 0;
  bool is_value = false;
  for (;; ++taken) {
    uint8_t first = 0;
    if (!from.byte(first)) return false;
    if (first == kEnd) break;
    uint64_t size = first;
    if (first == 254 && !from.number(4, size)) return false;
    uint8_t unused = 0;  // bytes after a value
    if (is_value && !from.byte(unused)) return false;
    Bytes element;
    Bytes skipped;
    if (!from.bytes(size, element) || !from.bytes(unused, skipped)) return false;
    if (!take(element)) return false;
    is_value = !is_value;
  }
  return !is_value && from.rest().empty() && (count >= 254 || count == taken / 2);
}

// --- Writing ---

ListpackWriter::ListpackWriter() : bytes_(kListpackHeader, '\0') {}

void ListpackWriter::append(Bytes element) {
  const size_t begin = bytes_.size();
  const auto integer = parse_i64(element);
  if (integer) {
    put_integer(*integer);
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

void ListpackWriter::append(int64_t number) {
  const size_t begin = bytes_.size();
  put_integer(number);
  end_entry(begin);
}

void ListpackWriter::put_integer(int64_t value) {
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
  bytes_ += BackLength(bytes_.size() - begin).bytes();
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
