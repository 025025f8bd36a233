// Hashes.
#include "engine/commands/hashes.h"

#include <cmath>

#include "engine/base/numbers.h"
#include "engine/commands/random_members.h"
#include "engine/commands/scan.h"
#include "engine/execution/call.h"

namespace sluice {

namespace {

const Field* find_field(const Entry* entry, Bytes name) {
  return entry == nullptr ? nullptr : entry->object<Hash>().fields.find(name, hash_bytes(name));
}

// Puts all pairs and returns the number of new fields, or -1 with the error replied.
int64_t put_fields(Call& call) {
  if (call.args.size() % 2 == 1) {
    call.reply.error("ERR wrong number of arguments for '" + std::string(call.command.name) +
                     "' command");
    return -1;
  }
  const KeyRef key = call.key(1);
  Entry* entry = call.find_or_create(key, Type::kHash);
  if (entry == nullptr) return -1;
  Database database = call.database(key);
  int64_t added = 0;
  for (size_t at = 2; at < call.args.size(); at += 2) {
    if (database.hash_put(key, entry, call.args[at], call.args[at + 1])) ++added;
  }
  return added;
}

void notify_put(Call& call) {
  const KeyRef key = call.key(1);
  call.database(key).notify(KeyEvent::kHSet, key.key);
}

void reply_all(Call& call, bool names, bool values) {
  const Found<const Entry> entry = call.find(call.key(1), Type::kHash);
  if (entry.refused()) return;
  const size_t count = entry == nullptr ? 0 : collection_size(*entry);
  names&& values ? call.reply.map(count) : call.reply.array(count);
  if (entry == nullptr) return;
  entry->object<Hash>().fields.for_each([&](const Field* field) {
    if (names) call.reply.bulk(field->name());
    if (values) call.reply.bulk(field->value());
  });
}

}  // namespace

void hset_command(Call& call) {
  const int64_t added = put_fields(call);
  if (added < 0) return;
  call.reply.integer(added);
  notify_put(call);
}

void hmset_command(Call& call) {
  if (put_fields(call) < 0) return;
  call.reply.ok();
  notify_put(call);
}

void hsetnx_command(Call& call) {
  const KeyRef key = call.key(1);
  Found<Entry> entry = call.find(key, Type::kHash);
  if (entry.refused()) return;
  if (find_field(entry, call.args[2]) != nullptr) return call.reply.integer(0);
  Database database = call.database(key);
  if (entry == nullptr) entry = database.create(key, Type::kHash);
  database.hash_put(key, entry, call.args[2], call.args[3]);
  call.reply.integer(1);
  notify_put(call);
}

void hget_command(Call& call) {
  const Found<const Entry> entry = call.find(call.key(1), Type::kHash);
  if (entry.refused()) return;
  const Field* field = find_field(entry, call.args[2]);
  field == nullptr ? call.reply.null() : call.reply.bulk(field->value());
}

void hmget_command(Call& call) {
  const Found<const Entry> entry = call.find(call.key(1), Type::kHash);
  if (entry.refused()) return;
  call.reply.array(call.args.size() - 2);
  for (const Bytes name : call.args.subspan(2)) {
    const Field* field = find_field(entry, name);
    field == nullptr ? call.reply.null() : call.reply.bulk(field->value());
  }
}

void hgetall_command(Call& call) { reply_all(call, true, true); }
void hkeys_command(Call& call) { reply_all(call, true, false); }
void hvals_command(Call& call) { reply_all(call, false, true); }

void hdel_command(Call& call) {
  const KeyRef key = call.key(1);
  const Found<Entry> entry = call.find(key, Type::kHash);
  if (entry.refused()) return;
  if (entry == nullptr) return call.reply.integer(0);
  Database database = call.database(key);
  int64_t deleted = 0;
  for (const Bytes name : call.args.subspan(2)) {
    if (database.hash_delete(key, entry, name)) ++deleted;
  }
  if (deleted != 0) database.notify(KeyEvent::kHDel, key.key);
  database.remove_if_empty(key, entry);
  call.reply.integer(deleted);
}

void hexists_command(Call& call) {
  const Found<const Entry> entry = call.find(call.key(1), Type::kHash);
  if (entry.refused()) return;
  call.reply.integer(find_field(entry, call.args[2]) != nullptr ? 1 : 0);
}

void hstrlen_command(Call& call) {
  const Found<const Entry> entry = call.find(call.key(1), Type::kHash);
  if (entry.refused()) return;
  const Field* field = find_field(entry, call.args[2]);
  call.reply.integer(field == nullptr ? 0 : static_cast<int64_t>(field->value().size()));
}

void hincrby_command(Call& call) {
  int64_t by = 0;
  if (!call.integer(3, by)) return;
  const KeyRef key = call.key(1);
  Found<Entry> entry = call.find(key, Type::kHash);
  if (entry.refused()) return;
  int64_t value = 0;
  if (const Field* field = find_field(entry, call.args[2])) {
    const auto old = parse_i64(field->value());
    if (!old) return call.reply.error("ERR hash value is not an integer");
    value = *old;
  }
  if (__builtin_add_overflow(value, by, &value)) {
    return call.reply.error("ERR increment or decrement would overflow");
  }
  Database database = call.database(key);
  if (entry == nullptr) entry = database.create(key, Type::kHash);
  char text[kMaxIntegerText];
  database.hash_put(key, entry, call.args[2], {text, format_i64(text, value)});
  call.reply.integer(value);
  database.notify(KeyEvent::kHIncrBy, key.key);
}

void hincrbyfloat_command(Call& call) {
  const auto by = parse_long_double(call.args[3]);
  if (!by) return call.reply.error(errors::kNotFloat);
  if (std::isinf(*by)) return call.reply.error("ERR value is NaN or Infinity");
  const KeyRef key = call.key(1);
  Found<Entry> entry = call.find(key, Type::kHash);
  if (entry.refused()) return;
  long double value = 0;
  if (const Field* field = find_field(entry, call.args[2])) {
    const auto old = parse_long_double(field->value());
    if (!old) return call.reply.error("ERR hash value is not a float");
    value = *old;
  }
  value += *by;
  if (std::isnan(value) || std::isinf(value)) {
    return call.reply.error("ERR increment would produce NaN or Infinity");
  }
  Database database = call.database(key);
  if (entry == nullptr) entry = database.create(key, Type::kHash);
  const std::string text = format_long_double(value);
  database.hash_put(key, entry, call.args[2], text);
  call.reply.bulk(text);
  database.notify(KeyEvent::kHIncrByFloat, key.key);
}

void hrandfield_command(Call& call) {
  RandomRequest request;
  if (!parse_random_request(call, "WITHVALUES", request)) return;
  const Found<const Entry> entry = call.find(call.key(1), Type::kHash);
  if (entry.refused()) return;
  if (entry == nullptr) return reply_random_missing(call, request);
  reply_random(
      call, request, entry->object<Hash>().fields,
      [&](const Field* field) { call.reply.bulk(field->name()); },
      [&](const Field* field) { call.reply.bulk(field->value()); });
}

void hscan_command(Call& call) {
  ScanRequest request;
  const Entry* entry = begin_element_scan(call, Type::kHash, request);
  if (entry == nullptr) return;
  const Hash& hash = entry->object<Hash>();
  const auto write = [&](const Field* field) {
    if (!request.matches(field->name())) return size_t{0};
    call.reply.bulk(field->name());
    if (request.no_values) return size_t{1};
    call.reply.bulk(field->value());
    return size_t{2};
  };
  if (!hash.listpack) return reply_scan(call, request, hash.fields, write);
  const size_t mark = begin_whole_scan(call);
  size_t count = 0;
  hash.fields.for_each([&](const Field* field) { count += write(field); });
  call.reply.close_array(mark, count);
}

}  // namespace sluice
