// Strings as arrays of bits: single bits, counts, searches, and operations between strings. Bit 0
// is the most significant bit of the first byte.
#include "engine/commands/bits.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "engine/base/numbers.h"
#include "engine/execution/call.h"
#include "engine/execution/engine.h"
#include "engine/execution/refusal.h"

namespace sluice {

namespace {

unsigned byte_at(Bytes bytes, size_t index) { return static_cast<unsigned char>(bytes[index]); }

bool bit_at(Bytes bytes, uint64_t offset) {
  const uint64_t index = offset / 8;
  return index < bytes.size() && (byte_at(bytes, index) >> (7 - offset % 8) & 1) != 0;
}

uint64_t word_at(const char* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

uint64_t count_ones(Bytes bytes) {
  uint64_t ones = 0;
  size_t at = 0;
  for (; at + sizeof(uint64_t) <= bytes.size(); at += sizeof(uint64_t)) {
    ones += static_cast<uint64_t>(std::popcount(word_at(bytes.data() + at)));
  }
  for (; at < bytes.size(); ++at) ones += static_cast<uint64_t>(std::popcount(byte_at(bytes, at)));
  return ones;
}

// The bits [first, last], inclusive, of a string that has them all.
struct BitRange {
  uint64_t first;
  uint64_t last;
};

uint64_t count_ones(Bytes bytes, BitRange range) {
  const uint64_t first_byte = range.first / 8;
  const uint64_t last_byte = range.last / 8;
  uint64_t ones = count_ones(bytes.substr(first_byte, last_byte - first_byte + 1));
  const unsigned before = byte_at(bytes, first_byte) & ~(0xffU >> range.first % 8);
  const unsigned behind = byte_at(bytes, last_byte) & (0x7fU >> range.last % 8);
  ones -= static_cast<uint64_t>(std::popcount(before) + std::popcount(behind));
  return ones;
}

// The first bit of this value in the range, or last + 1.
uint64_t find_bit(Bytes bytes, BitRange range, bool wanted) {
  uint64_t at = range.first;
  const uint64_t end = range.last + 1;
  // A word without any of the wanted bits.
  const uint64_t nothing = wanted ? 0 : UINT64_MAX;
  while (at < end) {
    if (at % 8 == 0 && at + 64 <= end && word_at(bytes.data() + at / 8) == nothing) {
      at += 64;
    } else if (at % 8 == 0 && at + 8 <= end && byte_at(bytes, at / 8) == (nothing & 0xff)) {
      at += 8;
    } else if (bit_at(bytes, at) == wanted) {
      return at;
    } else {
      ++at;
    }
  }
  return end;
}

// The range of BITCOUNT and BITPOS.
struct RangeOptions {
  int64_t first = 0;
  int64_t last = -1;
  bool in_bits = false;
};

bool parse_range_unit(const Call& call, size_t argument, RangeOptions& options) {
  options.in_bits = call.option(argument, "BIT");
  if (options.in_bits || call.option(argument, "BYTE")) return true;
  return fail(call, errors::kSyntax);
}

// Converts the options to bits of a string of `size` bytes. Returns nothing if the range is empty.
std::optional<BitRange> resolve_range(const RangeOptions& options, size_t size) {
  const auto total = static_cast<int64_t>(options.in_bits ? size * 8 : size);
  int64_t first = options.first < 0 ? options.first + total : options.first;
  int64_t last = options.last < 0 ? options.last + total : options.last;
  first = std::max<int64_t>(first, 0);
  last = std::min(std::max<int64_t>(last, 0), total - 1);
  if (first > last) return std::nullopt;
  const uint64_t unit = options.in_bits ? 1 : 8;
  return BitRange{static_cast<uint64_t>(first) * unit,
                  static_cast<uint64_t>(last) * unit + unit - 1};
}

}  // namespace

bool parse_bit_offset(const Call& call, size_t argument, int field_bits, uint64_t& offset) {
  Bytes text = call.args[argument];
  const bool in_fields = field_bits != 0 && text.starts_with('#');
  if (in_fields) text.remove_prefix(1);
  const auto number = parse_i64(text);
  int64_t bits = number.value_or(-1);
  // If the product overflows, Redis uses its low 64 bits.
  if (in_fields && number) __builtin_mul_overflow(bits, field_bits, &bits);
  const uint64_t limit = call.engine.options().max_bulk_bytes.load(std::memory_order_relaxed);
  if (bits < 0 || static_cast<uint64_t>(bits) / 8 >= limit) {
    return fail(call, "ERR bit offset is not an integer or out of range");
  }
  offset = static_cast<uint64_t>(bits);
  return true;
}

void setbit_command(Call& call) {
  uint64_t offset = 0;
  if (!parse_bit_offset(call, 2, 0, offset)) return;
  constexpr Bytes kNoBit = "ERR bit is not an integer or out of range";
  int64_t value = 0;
  if (!call.integer(3, value, kNoBit)) return;
  if (value != 0 && value != 1) return call.reply.error(kNoBit);
  const KeyRef key = call.key(1);
  const Found<Entry> entry = call.find(key, Type::kString);
  if (entry.refused()) return;
  const Bytes old = entry == nullptr ? Bytes() : entry->string();
  const size_t index = offset / 8;
  const bool was_set = bit_at(old, offset);
  if (index >= old.size() || was_set != (value == 1)) {
    const unsigned mask = 1U << (7 - offset % 8);
    const unsigned byte = index < old.size() ? byte_at(old, index) : 0;
    const char changed = static_cast<char>(value == 1 ? byte | mask : byte & ~mask);
    Database database = call.database(key);
    database.write_string(key, entry, index, {&changed, 1}, std::max(old.size(), index + 1));
    database.notify(KeyEvent::kSetBit, key.key);
  } else {
    entry->set_string_form(StringForm::kBuffer);
  }
  call.reply.integer(was_set ? 1 : 0);
}

void getbit_command(Call& call) {
  uint64_t offset = 0;
  if (!parse_bit_offset(call, 2, 0, offset)) return;
  const Found<const Entry> entry = call.find(call.key(1), Type::kString);
  if (entry.refused()) return;
  call.reply.integer(entry != nullptr && bit_at(entry->string(), offset) ? 1 : 0);
}

void bitcount_command(Call& call) {
  const Found<const Entry> entry = call.find(call.key(1), Type::kString);
  if (entry.refused()) return;
  // Redis checks the remaining arguments only if the key exists.
  if (entry == nullptr) return call.reply.integer(0);
  RangeOptions options;
  const size_t count = call.args.size();
  if (count != 2 && count != 4 && count != 5) return call.reply.error(errors::kSyntax);
  if (count > 2) {
    if (!call.integer(2, options.first) || !call.integer(3, options.last)) return;
    if (options.first < 0 && options.last < 0 && options.first > options.last) {
      return call.reply.integer(0);
    }
    if (count == 5 && !parse_range_unit(call, 4, options)) return;
  }
  const auto range = resolve_range(options, entry->string().size());
  call.reply.integer(range ? static_cast<int64_t>(count_ones(entry->string(), *range)) : 0);
}

void bitpos_command(Call& call) {
  int64_t wanted = 0;
  if (!call.integer(2, wanted)) return;
  if (wanted != 0 && wanted != 1) {
    return call.reply.error("ERR The bit argument must be 1 or 0.");
  }
  const Found<const Entry> entry = call.find(call.key(1), Type::kString);
  if (entry.refused()) return;
  // A missing key counts as endless zeros.
  if (entry == nullptr) return call.reply.integer(wanted == 1 ? -1 : 0);
  RangeOptions options;
  const size_t count = call.args.size();
  if (count > 6) return call.reply.error(errors::kSyntax);
  if (count > 3 && !call.integer(3, options.first)) return;
  if (count > 5 && !parse_range_unit(call, 5, options)) return;
  if (count > 4 && !call.integer(4, options.last)) return;
  const auto range = resolve_range(options, entry->string().size());
  if (!range) return call.reply.integer(-1);
  const uint64_t found = find_bit(entry->string(), *range, wanted == 1);
  // Zeros follow a string, unless the end of the range was given.
  const bool there = found <= range->last || (wanted == 0 && count <= 4);
  call.reply.integer(there ? static_cast<int64_t>(found) : -1);
}

namespace {

enum class BitOperation : uint8_t { kAnd, kOr, kXor, kNot };

bool parse_operation(const Call& call, BitOperation& operation) {
  if (call.option(1, "AND")) {
    operation = BitOperation::kAnd;
  } else if (call.option(1, "OR")) {
    operation = BitOperation::kOr;
  } else if (call.option(1, "XOR")) {
    operation = BitOperation::kXor;
  } else if (call.option(1, "NOT")) {
    operation = BitOperation::kNot;
    if (call.args.size() != 4) {
      return fail(call, "ERR BITOP NOT must be called with a single source key.");
    }
  } else {
    return fail(call, errors::kSyntax);
  }
  return true;
}

// `result` has at least as many bytes as the source, which is extended with zeros.
void combine(std::string& result, Bytes source, BitOperation operation) {
  char* to = result.data();
  const size_t size = source.size();
  switch (operation) {
    case BitOperation::kAnd:
      for (size_t i = 0; i < size; ++i) to[i] = static_cast<char>(to[i] & source[i]);
      std::fill(result.begin() + static_cast<std::ptrdiff_t>(size), result.end(), '\0');
      break;
    case BitOperation::kOr:
      for (size_t i = 0; i < size; ++i) to[i] = static_cast<char>(to[i] | source[i]);
      break;
    case BitOperation::kXor:
      for (size_t i = 0; i < size; ++i) to[i] = static_cast<char>(to[i] ^ source[i]);
      break;
    case BitOperation::kNot:
      break;
  }
}

}  // namespace

void bitop_command(Call& call) {
  BitOperation operation{};
  if (!parse_operation(call, operation)) return;
  std::vector<Bytes> sources;
  size_t size = 0;
  for (size_t at = 3; at < call.args.size(); ++at) {
    const Found<const Entry> entry = call.read(call.key(at), Type::kString);
    if (entry.refused()) return;
    sources.push_back(entry == nullptr ? Bytes() : entry->string());
    size = std::max(size, sources.back().size());
  }
  std::string result(sources[0]);
  result.resize(size);
  for (size_t i = 1; i < sources.size(); ++i) combine(result, sources[i], operation);
  if (operation == BitOperation::kNot) {
    for (char& byte : result) byte = static_cast<char>(~byte);
  }
  const KeyRef key(call.args[2]);
  if (!journal_takes(call, key.key, 1, [&] { return size; })) return;
  Database database = call.database(key);
  Entry* old = database.find(key);
  if (size != 0) {
    database.put_string(key, old, result, 0);
    database.find(key)->set_string_form(StringForm::kBuffer);
    database.notify(KeyEvent::kSet, key.key);
  } else if (old != nullptr) {
    database.remove(key, old);
    database.notify(KeyEvent::kDel, key.key);
  }
  call.reply.integer(static_cast<int64_t>(size));
}

}  // namespace sluice
