#include "engine/rdb/reader.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/base/numbers.h"
#include "engine/rdb/crc64.h"

namespace sluice::rdb {

namespace {

constexpr uint64_t kEncodedInt8 = 0;
constexpr uint64_t kEncodedInt16 = 1;
constexpr uint64_t kEncodedInt32 = 2;
constexpr uint64_t kEncodedLzf = 3;
// A reference of LZF has at most 3 bytes and stands for at most 264.
constexpr uint64_t kMostLzfExpansion = 264;
constexpr uint64_t kWindowBytes = 256 * 1024;

int64_t sign_extended(uint64_t value, size_t width) {
  const unsigned shift = static_cast<unsigned>(64 - 8 * width);
  return static_cast<int64_t>(value << shift) >> shift;
}

}  // namespace

bool Reader::fill(uint64_t count) {
  if (count > left()) return false;
  const size_t taken = buffer_.size() - rest_.size();
  crc_ = crc64(Bytes(buffer_).substr(0, taken), crc_);
  buffer_.erase(0, taken);
  size_t filled = buffer_.size();
  const uint64_t wanted = std::max<uint64_t>(count, kWindowBytes);
  buffer_.resize(filled + std::min(wanted - filled, unread_));
  while (filled < count) {
    const size_t got = source_->read(buffer_.data() + filled, buffer_.size() - filled);
    if (got == 0) break;
    filled += got;
    unread_ -= got;
  }
  buffer_.resize(filled);
  rest_ = buffer_;
  return filled >= count;
}

uint64_t Reader::checksum() const {
  return crc64(Bytes(buffer_).substr(0, buffer_.size() - rest_.size()), crc_);
}

bool Reader::byte(uint8_t& value) {
  if (!need(1)) return false;
  value = static_cast<uint8_t>(rest_[0]);
  rest_.remove_prefix(1);
  return true;
}

bool Reader::bytes(uint64_t count, Bytes& value) {
  if (!need(count)) return false;
  value = rest_.substr(0, count);
  rest_.remove_prefix(count);
  return true;
}

bool Reader::number(size_t width, uint64_t& value) {
  Bytes raw;
  if (!bytes(width, raw)) return false;
  value = 0;
  for (size_t i = width; i != 0; --i) value = value << 8 | static_cast<uint8_t>(raw[i - 1]);
  return true;
}

bool Reader::length_or_encoding(uint64_t& value, bool& encoded) {
  uint8_t first = 0;
  if (!byte(first)) return false;
  encoded = false;
  size_t width = 0;  // of the big-endian length that follows
  switch (first >> 6) {
    case 0:
      value = first & 0x3f;
      return true;
    case 1:
      value = first & 0x3f;
      width = 1;
      break;
    case 2:
      if (first != 0x80 && first != 0x81) return false;
      value = 0;
      width = first == 0x80 ? 4 : 8;
      break;
    default:
      encoded = true;
      value = first & 0x3f;
      return true;
  }
  for (; width != 0; --width) {
    uint8_t next = 0;
    if (!byte(next)) return false;
    value = value << 8 | next;
  }
  return true;
}

bool Reader::length(uint64_t& value) {
  bool encoded = false;
  return length_or_encoding(value, encoded) && !encoded;
}

bool Reader::count(size_t least_bytes, uint64_t& value) {
  return length(value) && value <= left() / least_bytes;
}

bool Reader::string(Bytes& value) {
  bool encoded = false;
  uint64_t size = 0;
  if (!length_or_encoding(size, encoded)) return false;
  if (!encoded) return size <= max_string_bytes_ && bytes(size, value);
  if (size == kEncodedLzf) return compressed_string(value);
  if (size != kEncodedInt8 && size != kEncodedInt16 && size != kEncodedInt32) return false;
  const size_t width = size_t{1} << size;
  uint64_t raw = 0;
  if (!number(width, raw)) return false;
  unpacked_ = std::to_string(sign_extended(raw, width));
  value = unpacked_;
  return true;
}

bool Reader::compressed_string(Bytes& value) {
  uint64_t packed_size = 0;
  uint64_t size = 0;
  Bytes packed;
  if (!length(packed_size) || !length(size)) return false;
  if (size == 0 || size > max_string_bytes_ || size / kMostLzfExpansion > packed_size) return false;
  // A string is compressed only if that makes it shorter.
  if (packed_size > size || !bytes(packed_size, packed)) return false;
  if (!lzf_decompress(packed, size, unpacked_)) return false;
  value = unpacked_;
  return true;
}

bool Reader::binary_double(double& value) {
  uint64_t raw = 0;
  if (!number(sizeof(value), raw)) return false;
  std::memcpy(&value, &raw, sizeof(value));
  return !std::isnan(value);
}

bool Reader::text_double(double& value) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  uint8_t size = 0;
  if (!byte(size)) return false;
  if (size == 253) return false;  // not a number
  if (size >= 254) {
    value = size == 254 ? kInfinity : -kInfinity;
    return true;
  }
  Bytes text;
  if (!bytes(size, text)) return false;
  const auto parsed = parse_double(text);
  value = parsed.value_or(0);
  return parsed.has_value();
}

// A byte below 32 is followed by that many literal bytes plus one. Any other byte is a reference to
// earlier output: length - 2 in its high three bits (7: another byte of it follows), the distance -
// 1 in the low five and the next byte.
bool lzf_decompress(Bytes packed, size_t size, std::string& out) {
  out.clear();
  out.reserve(size);
  size_t at = 0;
  const auto next = [&] { return static_cast<uint8_t>(packed[at++]); };
  while (at < packed.size()) {
    const unsigned control = next();
    if (control < 32) {
      const size_t literal = control + 1;
      if (literal > packed.size() - at || literal > size - out.size()) return false;
      out.append(packed.substr(at, literal));
      at += literal;
      continue;
    }
    size_t length = (control >> 5) + 2;
    if (length == 9) {
      if (at == packed.size()) return false;
      length += next();
    }
    if (at == packed.size()) return false;
    const size_t distance = ((control & 0x1f) << 8 | next()) + size_t{1};
    if (distance > out.size() || length > size - out.size()) return false;
    // The source may overlap the output.
    for (size_t from = out.size() - distance; length != 0; --length) out.push_back(out[from++]);
  }
  return out.size() == size;
}

}  // namespace sluice::rdb
