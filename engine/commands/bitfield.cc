// BITFIELD and BITFIELD_RO: integers of any width at any bit of a string. The first bit of a field
// is its most significant one.
#include <algorithm>
#include <vector>

#include "engine/base/numbers.h"
#include "engine/commands/bits.h"
#include "engine/execution/call.h"

namespace sluice {

namespace {

// Wide enough for the sum of any field and any increment.
using Wide = __int128;

enum class Overflow : uint8_t { kWrap, kSaturate, kFail };

struct FieldType {
  bool is_signed = false;
  int bits = 0;

  Wide smallest() const { return is_signed ? -(Wide{1} << (bits - 1)) : Wide{0}; }
  Wide largest() const { return (Wide{1} << (is_signed ? bits - 1 : bits)) - 1; }
};

struct BitfieldOperation {
  enum class What : uint8_t { kGet, kSet, kIncrement };
  What what = What::kGet;
  FieldType type;
  uint64_t offset = 0;
  int64_t operand = 0;
  Overflow overflow = Overflow::kWrap;
};

struct BitfieldRequest {
  std::vector<BitfieldOperation> operations;
  // The end of the last bit that is written; 0: no write.
  uint64_t write_end = 0;
};

bool parse_type(const Call& call, size_t argument, FieldType& type) {
  const Bytes text = call.args[argument];
  const bool known = !text.empty() && (text[0] == 'i' || text[0] == 'u');
  const int64_t bits = known ? parse_i64(text.substr(1)).value_or(0) : 0;
  type.is_signed = known && text[0] == 'i';
  if (bits < 1 || bits > (type.is_signed ? 64 : 63)) {
    return fail(
        call,
        "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but "
        "i64 is.");
  }
  type.bits = static_cast<int>(bits);
  return true;
}

bool parse_overflow(const Call& call, size_t argument, Overflow& overflow) {
  if (call.option(argument, "WRAP")) {
    overflow = Overflow::kWrap;
  } else if (call.option(argument, "SAT")) {
    overflow = Overflow::kSaturate;
  } else if (call.option(argument, "FAIL")) {
    overflow = Overflow::kFail;
  } else {
    return fail(call, "ERR Invalid OVERFLOW type specified");
  }
  return true;
}

bool parse(const Call& call, BitfieldRequest& request) {
  using What = BitfieldOperation::What;
  Overflow overflow = Overflow::kWrap;
  const size_t count = call.args.size();
  size_t at = 2;
  while (at < count) {
    const size_t left = count - at - 1;
    BitfieldOperation operation;
    if (call.option(at, "OVERFLOW") && left >= 1) {
      if (!parse_overflow(call, at + 1, overflow)) return false;
      at += 2;
      continue;
    }
    if (call.option(at, "GET") && left >= 2) {
      operation.what = What::kGet;
    } else if (call.option(at, "SET") && left >= 3) {
      operation.what = What::kSet;
    } else if (call.option(at, "INCRBY") && left >= 3) {
      operation.what = What::kIncrement;
    } else {
      return fail(call, errors::kSyntax);
    }
    if (!parse_type(call, at + 1, operation.type)) return false;
    if (!parse_bit_offset(call, at + 2, operation.type.bits, operation.offset)) return false;
    at += 3;
    if (operation.what != What::kGet) {
      if (!call.integer(at++, operation.operand)) return false;
      const uint64_t end = operation.offset + static_cast<uint64_t>(operation.type.bits);
      request.write_end = std::max(request.write_end, end);
    }
    operation.overflow = overflow;
    request.operations.push_back(operation);
  }
  return true;
}

Wide read_field(Bytes bytes, uint64_t offset, FieldType type) {
  Wide value = 0;
  for (uint64_t bit = offset; bit < offset + static_cast<uint64_t>(type.bits); ++bit) {
    const uint64_t index = bit / 8;
    const unsigned byte = index < bytes.size() ? static_cast<unsigned char>(bytes[index]) : 0;
    value = value * 2 + (byte >> (7 - bit % 8) & 1);
  }
  if (type.is_signed && value > type.largest()) value -= Wide{1} << type.bits;
  return value;
}

// The bytes that hold the field, with `value` in it. REQUIRES: the string has them.
std::string with_field(Bytes bytes, uint64_t offset, FieldType type, Wide value) {
  const uint64_t first = offset / 8;
  const uint64_t last = (offset + static_cast<uint64_t>(type.bits) - 1) / 8;
  std::string changed(bytes.substr(first, last - first + 1));
  for (int i = 0; i < type.bits; ++i) {
    const uint64_t bit = offset + static_cast<uint64_t>(type.bits - 1 - i) - first * 8;
    const unsigned mask = 1U << (7 - bit % 8);
    const auto byte = static_cast<unsigned char>(changed[bit / 8]);
    const bool one = (value >> i & 1) != 0;
    changed[bit / 8] = static_cast<char>(one ? byte | mask : byte & ~mask);
  }
  return changed;
}

// Converts `value` to the type's range. Returns false if it does not fit and the operation must
// fail.
bool fit(FieldType type, Overflow overflow, Wide& value) {
  if (value >= type.smallest() && value <= type.largest()) return true;
  if (overflow == Overflow::kFail) return false;
  if (overflow == Overflow::kSaturate) {
    value = value > type.largest() ? type.largest() : type.smallest();
    return true;
  }
  value &= (Wide{1} << type.bits) - 1;
  if (value > type.largest()) value -= Wide{1} << type.bits;
  return true;
}

// Returns whether it counts as a change: a write that did not fail and either changed the field or
// was in a string that had grown.
bool run(Call& call, const KeyRef& key, const BitfieldOperation& operation, bool grown) {
  Database database = call.database(key);
  // A write may have moved the entry.
  Entry* entry = database.find(key);
  const Bytes bytes = entry == nullptr ? Bytes() : entry->string();
  const FieldType type = operation.type;
  const Wide old_value = read_field(bytes, operation.offset, type);
  if (operation.what == BitfieldOperation::What::kGet) {
    call.reply.integer(static_cast<int64_t>(old_value));
    return false;
  }
  const bool set = operation.what == BitfieldOperation::What::kSet;
  Wide value = set ? Wide{operation.operand} : old_value + operation.operand;
  // An unsigned field takes a negative number as its bits.
  if (set && !type.is_signed) value = static_cast<uint64_t>(operation.operand);
  // Where Redis's distance to the largest number wraps around, it takes the number for too large.
  const bool wraps = type.is_signed && type.bits < 64 && type.largest() - value > INT64_MAX;
  if (set && wraps && operation.overflow == Overflow::kSaturate) value = type.largest();
  if (!fit(type, operation.overflow, value)) {
    call.reply.null();
    return false;
  }
  call.reply.integer(static_cast<int64_t>(set ? old_value : value));
  if (value == old_value) return grown;
  const std::string changed = with_field(bytes, operation.offset, type, value);
  database.write_string(key, entry, operation.offset / 8, changed, bytes.size());
  return true;
}

void bitfield(Call& call, bool read_only) {
  BitfieldRequest request;
  if (!parse(call, request)) return;
  if (read_only && request.write_end != 0) {
    return call.reply.error("ERR BITFIELD_RO only supports the GET subcommand");
  }
  const KeyRef key = call.key(1);
  const Found<Entry> entry =
      request.write_end == 0 ? call.read(key, Type::kString) : call.find(key, Type::kString);
  if (entry.refused()) return;
  // The string grows to the end of the furthest write, even if that write fails.
  const size_t needed = (request.write_end + 7) / 8;
  const bool grown = needed > (entry == nullptr ? 0 : entry->string().size());
  const uint64_t changes_before = call.unit.changes;
  if (grown) {
    call.database(key).write_string(key, entry, 0, {}, needed);
  } else if (needed != 0) {
    entry->set_string_form(StringForm::kBuffer);
  }
  call.reply.array(request.operations.size());
  uint64_t changed = 0;
  for (const BitfieldOperation& operation : request.operations) {
    if (run(call, key, operation, grown)) ++changed;
  }
  // As Redis counts: operations instead of writes.
  call.unit.changes = changes_before + changed;
  if (changed != 0) call.database(key).notify(KeyEvent::kSetBit, key.key);
}

}  // namespace

uint32_t bitfield_key_flags(std::span<const Bytes> args) {
  constexpr uint32_t kWrites = kKeyRw | kKeyAccess | kKeyUpdate;
  for (size_t i = 2; i < args.size();) {
    const bool overflow = equals_ignore_case(args[i], "overflow");
    if (!overflow && !equals_ignore_case(args[i], "get")) return kWrites;
    i += overflow ? 2 : 3;
    if (i > args.size()) return kWrites;
  }
  return kKeyRo | kKeyAccess;
}

void bitfield_command(Call& call) { bitfield(call, false); }
void bitfield_ro_command(Call& call) { bitfield(call, true); }

}  // namespace sluice
