// Strings: values, counters, ranges. LCS is in lcs.cc.
#include "engine/commands/strings.h"

#include <cmath>

#include "engine/base/numbers.h"
#include "engine/commands/expire_time.h"
#include "engine/execution/call.h"
#include "engine/execution/engine.h"

namespace sluice {

namespace {

// The options of SET and GETEX after their fixed arguments.
struct SetOptions {
  bool if_absent = false;
  bool if_present = false;
  size_t if_equal_argument = 0;  // the argument with the required old value; 0: any value
  bool get = false;
  bool keep_ttl = false;
  bool persist = false;
  ExpireUnit unit = ExpireUnit::kNone;
  size_t expire_argument = 0;
};

bool parse_expire_option(const Call& call, size_t& at, SetOptions& options) {
  static constexpr struct {
    Bytes word;
    ExpireUnit unit;
  } kUnits[] = {{"EX", ExpireUnit::kSeconds},
                {"PX", ExpireUnit::kMilliseconds},
                {"EXAT", ExpireUnit::kUnixSeconds},
                {"PXAT", ExpireUnit::kUnixMilliseconds}};
  for (const auto& [word, unit] : kUnits) {
    if (!call.option(at, word)) continue;
    if (at + 1 >= call.args.size() || options.keep_ttl || options.persist ||
        (options.unit != ExpireUnit::kNone && options.unit != unit)) {
      return false;
    }
    options.unit = unit;
    options.expire_argument = ++at;
    return true;
  }
  return false;
}

bool parse_set_options(const Call& call, size_t first, bool is_set, SetOptions& options) {
  for (size_t at = first; at < call.args.size(); ++at) {
    const bool if_equal = options.if_equal_argument != 0;
    if (is_set && call.option(at, "NX") && !options.if_present && !if_equal) {
      options.if_absent = true;
    } else if (is_set && call.option(at, "XX") && !options.if_absent && !if_equal) {
      options.if_present = true;
    } else if (is_set && call.option(at, "IFEQ") && at + 1 < call.args.size() && !if_equal &&
               !options.if_absent && !options.if_present) {
      options.if_equal_argument = ++at;
    } else if (is_set && call.option(at, "GET")) {
      options.get = true;
    } else if (is_set && call.option(at, "KEEPTTL") && options.unit == ExpireUnit::kNone) {
      options.keep_ttl = true;
    } else if (!is_set && call.option(at, "PERSIST") && options.unit == ExpireUnit::kNone) {
      options.persist = true;
    } else if (!parse_expire_option(call, at, options)) {
      return fail(call, errors::kSyntax);
    }
  }
  return true;
}

// Whether the conditions of SET hold for the old value.
bool allows(const Call& call, const SetOptions& options, const Entry* entry) {
  if (options.if_absent) return entry == nullptr;
  if (options.if_present) return entry != nullptr;
  if (options.if_equal_argument == 0) return true;
  return entry != nullptr && entry->string() == call.args[options.if_equal_argument];
}

// SET and its variants, after parsing the options.
void set_generic(Call& call, Bytes value, const SetOptions& options, Bytes if_done,
                 bool integer_reply) {
  int64_t expire_ms = 0;
  if (options.unit != ExpireUnit::kNone &&
      !parse_expire_time(call, options.expire_argument, options.unit, expire_ms)) {
    return;
  }
  const KeyRef key = call.key(1);
  Database database = call.database(key);
  Entry* entry = options.get ? call.read(key) : database.find(key);
  if ((options.get || options.if_equal_argument != 0) && entry != nullptr &&
      entry->type() != Type::kString) {
    return call.reply.error(errors::kWrongType);
  }
  if (options.get) {
    if (entry == nullptr) {
      call.reply.null();
    } else {
      call.reply.bulk(entry->string());
    }
  }
  if (!allows(call, options, entry)) {
    if (options.get) return;
    return integer_reply ? call.reply.integer(0) : call.reply.null();
  }
  if (options.keep_ttl && entry != nullptr) expire_ms = entry->expire_ms();
  database.put_string(key, entry, value, expire_ms, call.lent);
  database.notify(KeyEvent::kSet, key.key);
  if (options.unit != ExpireUnit::kNone) database.notify(KeyEvent::kExpire, key.key);
  if (options.get) return;
  integer_reply ? call.reply.integer(1) : call.reply.simple(if_done);
}

void set_with_expiry(Call& call, ExpireUnit unit) {
  SetOptions options;
  options.unit = unit;
  options.expire_argument = 2;
  set_generic(call, call.args[3], options, "OK", false);
}

bool fits(const Call& call, uint64_t size) {
  if (size <= call.engine.options().max_bulk_bytes.load(std::memory_order_relaxed)) return true;
  return fail(call, "ERR string exceeds maximum allowed size (proto-max-bulk-len)");
}

void add_integer(Call& call, int64_t by) {
  const KeyRef key = call.key(1);
  Database database = call.database(key);
  const Found<Entry> entry = call.find(key, Type::kString);
  if (entry.refused()) return;
  int64_t value = 0;
  if (entry != nullptr) {
    const auto old = parse_i64(entry->string());
    if (!old) return call.reply.error(errors::kNotInteger);
    value = *old;
  }
  if (__builtin_add_overflow(value, by, &value)) {
    return call.reply.error("ERR increment or decrement would overflow");
  }
  char text[kMaxIntegerText];
  const size_t length = format_i64(text, value);
  database.put_string(key, entry, {text, length}, entry != nullptr ? entry->expire_ms() : 0);
  database.notify(KeyEvent::kIncrBy, key.key);
  call.reply.integer(value);
}

}  // namespace

void get_command(Call& call) {
  const Found<const Entry> entry = call.find(call.key(1), Type::kString);
  if (entry.refused()) return;
  if (entry == nullptr) return call.reply.null();
  call.reply.bulk(entry->string());
}

uint32_t set_key_flags(std::span<const Bytes> args) {
  for (size_t i = 3; i < args.size(); ++i) {
    const bool reads = equals_ignore_case(args[i], "get") || equals_ignore_case(args[i], "ifeq");
    if (reads) return kKeyRw | kKeyAccess | kKeyUpdate;
  }
  return kKeyOw | kKeyUpdate;
}

void set_command(Call& call) {
  SetOptions options;
  if (call.args.size() > 3 && !parse_set_options(call, 3, true, options)) return;
  set_generic(call, call.args[2], options, "OK", false);
}

void setnx_command(Call& call) {
  SetOptions options;
  options.if_absent = true;
  set_generic(call, call.args[2], options, {}, true);
}

void setex_command(Call& call) { set_with_expiry(call, ExpireUnit::kSeconds); }
void psetex_command(Call& call) { set_with_expiry(call, ExpireUnit::kMilliseconds); }

void mget_command(Call& call) {
  call.reply.array(call.args.size() - 1);
  for (size_t at = 1; at < call.args.size(); ++at) {
    const Entry* entry = call.find(call.key(at));
    if (entry == nullptr || entry->type() != Type::kString) {
      call.reply.null();
    } else {
      call.reply.bulk(entry->string());
    }
  }
}

namespace {

bool check_pairs(Call& call) {
  if (call.args.size() % 2 == 1) return true;
  return fail(call,
              "ERR wrong number of arguments for '" + std::string(call.command.name) + "' command");
}

void put_pairs(Call& call) {
  for (size_t at = 1; at < call.args.size(); at += 2) {
    const KeyRef key = call.key(at);
    Database database = call.database(key);
    database.put_string(key, call.args[at + 1], 0);
    database.notify(KeyEvent::kSet, key.key);
  }
}

}  // namespace

void mset_command(Call& call) {
  if (!check_pairs(call)) return;
  put_pairs(call);
  call.reply.ok();
}

void msetnx_command(Call& call) {
  if (!check_pairs(call)) return;
  for (size_t at = 1; at < call.args.size(); at += 2) {
    if (call.find(call.key(at)) != nullptr) return call.reply.integer(0);
  }
  put_pairs(call);
  call.reply.integer(1);
}

void getset_command(Call& call) {
  SetOptions options;
  options.get = true;
  set_generic(call, call.args[2], options, {}, false);
}

void delifeq_command(Call& call) {
  const KeyRef key = call.key(1);
  const Found<Entry> entry = call.find(key, Type::kString);
  if (entry.refused()) return;
  if (entry == nullptr || entry->string() != call.args[2]) return call.reply.integer(0);
  Database database = call.database(key);
  database.remove(key, entry);
  database.notify(KeyEvent::kDel, key.key);
  call.reply.integer(1);
}

void getdel_command(Call& call) {
  const KeyRef key = call.key(1);
  const Found<Entry> entry = call.read(key, Type::kString);
  if (entry.refused()) return;
  if (entry == nullptr) return call.reply.null();
  call.reply.bulk(entry->string());
  Database database = call.database(key);
  database.remove(key, entry);
  database.notify(KeyEvent::kDel, key.key);
}

void getex_command(Call& call) {
  SetOptions options;
  if (!parse_set_options(call, 2, false, options)) return;
  const KeyRef key = call.key(1);
  const Found<Entry> entry = call.read(key, Type::kString);
  if (entry.refused()) return;
  if (entry == nullptr) return call.reply.null();
  int64_t expire_ms = 0;
  if (options.unit != ExpireUnit::kNone &&
      !parse_expire_time(call, options.expire_argument, options.unit, expire_ms)) {
    return;
  }
  call.reply.bulk(entry->string());
  Database database = call.database(key);
  if (options.unit != ExpireUnit::kNone) {
    if (expire_ms <= call.now_ms()) {
      database.remove(key, entry);
      database.notify(KeyEvent::kDel, key.key);
    } else {
      database.set_expire(key, entry, expire_ms);
      database.notify(KeyEvent::kExpire, key.key);
    }
  } else if (options.persist && entry->expire_ms() != 0) {
    database.set_expire(key, entry, 0);
    database.notify(KeyEvent::kPersist, key.key);
  }
}

void append_command(Call& call) {
  const KeyRef key = call.key(1);
  const Found<Entry> entry = call.find(key, Type::kString);
  if (entry.refused()) return;
  const Bytes tail = call.args[2];
  const size_t old_size = entry == nullptr ? 0 : entry->string().size();
  if (!fits(call, uint64_t{old_size} + tail.size())) return;
  Database database = call.database(key);
  if (entry == nullptr) {
    database.put_string(key, nullptr, tail, 0);
  } else {
    database.write_string(key, entry, old_size, tail, old_size + tail.size());
  }
  database.notify(KeyEvent::kAppend, key.key);
  call.reply.integer(static_cast<int64_t>(old_size + tail.size()));
}

void strlen_command(Call& call) {
  const Found<const Entry> entry = call.find(call.key(1), Type::kString);
  if (entry.refused()) return;
  call.reply.integer(entry == nullptr ? 0 : static_cast<int64_t>(entry->string().size()));
}

void incr_command(Call& call) { add_integer(call, 1); }
void decr_command(Call& call) { add_integer(call, -1); }

void incrby_command(Call& call) {
  int64_t by = 0;
  if (call.integer(2, by)) add_integer(call, by);
}

void decrby_command(Call& call) {
  int64_t by = 0;
  if (!call.integer(2, by)) return;
  if (by == INT64_MIN) return call.reply.error("ERR decrement would overflow");
  add_integer(call, -by);
}

void incrbyfloat_command(Call& call) {
  const KeyRef key = call.key(1);
  const Found<Entry> entry = call.find(key, Type::kString);
  if (entry.refused()) return;
  long double value = 0;
  if (entry != nullptr) {
    const auto old = parse_long_double(entry->string());
    if (!old) return call.reply.error(errors::kNotFloat);
    value = *old;
  }
  const auto by = parse_long_double(call.args[2]);
  if (!by) return call.reply.error(errors::kNotFloat);
  value += *by;
  if (std::isnan(value) || std::isinf(value)) {
    return call.reply.error("ERR increment would produce NaN or Infinity");
  }
  const std::string text = format_long_double(value);
  Database database = call.database(key);
  database.put_string(key, entry, text, entry != nullptr ? entry->expire_ms() : 0);
  database.find(key)->set_string_form(StringForm::kText);
  database.notify(KeyEvent::kIncrByFloat, key.key);
  call.reply.bulk(text);
}

void setrange_command(Call& call) {
  int64_t offset = 0;
  if (!call.integer(2, offset)) return;
  if (offset < 0) return call.reply.error("ERR offset is out of range");
  const KeyRef key = call.key(1);
  const Found<Entry> entry = call.find(key, Type::kString);
  if (entry.refused()) return;
  const Bytes bytes = call.args[3];
  const size_t old_size = entry == nullptr ? 0 : entry->string().size();
  if (bytes.empty()) return call.reply.integer(static_cast<int64_t>(old_size));
  const uint64_t end = static_cast<uint64_t>(offset) + bytes.size();
  if (!fits(call, end)) return;
  const size_t size = std::max<size_t>(old_size, end);
  Database database = call.database(key);
  database.write_string(key, entry, static_cast<size_t>(offset), bytes, size);
  database.notify(KeyEvent::kSetRange, key.key);
  call.reply.integer(static_cast<int64_t>(size));
}

void getrange_command(Call& call) {
  int64_t first = 0;
  int64_t last = 0;
  if (!call.integer(2, first) || !call.integer(3, last)) return;
  const Found<const Entry> entry = call.find(call.key(1), Type::kString);
  if (entry.refused()) return;
  if (entry == nullptr) return call.reply.bulk({});
  const Bytes value = entry->string();
  const auto size = static_cast<int64_t>(value.size());
  if (first < 0 && last < 0 && first > last) return call.reply.bulk({});
  if (first < 0) first = std::max<int64_t>(first + size, 0);
  if (last < 0) last = std::max<int64_t>(last + size, 0);
  last = std::min(last, size - 1);
  if (first > last || size == 0) return call.reply.bulk({});
  call.reply.bulk(value.substr(static_cast<size_t>(first), static_cast<size_t>(last - first + 1)));
}

}  // namespace sluice
