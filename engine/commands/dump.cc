// DUMP and RESTORE: values in RDB's format, exchangeable with redis-server.
#include "engine/commands/keys.h"
#include "engine/execution/call.h"
#include "engine/execution/engine.h"
#include "engine/execution/refusal.h"
#include "engine/rdb/value.h"

namespace sluice {

namespace {

struct RestoreOptions {
  bool replace = false;
  bool absolute = false;
  int64_t idle_s = -1;
  int64_t frequency = -1;  // checked and ignored
};

bool parse_options(const Call& call, RestoreOptions& options) {
  for (size_t at = 4; at < call.args.size(); ++at) {
    const bool has_next = at + 1 < call.args.size();
    if (call.option(at, "REPLACE")) {
      options.replace = true;
    } else if (call.option(at, "ABSTTL")) {
      options.absolute = true;
    } else if (call.option(at, "IDLETIME") && has_next && options.frequency == -1) {
      if (!call.integer(++at, options.idle_s)) return false;
      if (options.idle_s < 0) return fail(call, "ERR Invalid IDLETIME value, must be >= 0");
    } else if (call.option(at, "FREQ") && has_next && options.idle_s == -1) {
      if (!call.integer(++at, options.frequency)) return false;
      if (options.frequency < 0 || options.frequency > 255) {
        return fail(call, "ERR Invalid FREQ value, must be >= 0 and <= 255");
      }
    } else {
      return fail(call, errors::kSyntax);
    }
  }
  return true;
}

bool read_payload(const Call& call, OwnedEntry& value) {
  const uint64_t limit = call.engine.options().max_bulk_bytes.load(std::memory_order_relaxed);
  switch (rdb::read_payload(call.args[3], limit, call.args[1], value)) {
    case rdb::PayloadFault::kNone:
      return true;
    case rdb::PayloadFault::kFooter:
      return fail(call, "ERR DUMP payload version or checksum are wrong");
    case rdb::PayloadFault::kData:
      return fail(call, "ERR Bad data format");
  }
  return false;
}

}  // namespace

void dump_command(Call& call) {
  const Entry* entry = call.find(call.key(1));
  if (entry == nullptr) return call.reply.null();
  if (!rdb::can_write(entry->type())) {
    return call.reply.error("ERR RDB has no form for a value of type " +
                            std::string(type_name(entry->type())));
  }
  call.reply.bulk(rdb::write_payload(*entry));
}

void restore_command(Call& call) {
  RestoreOptions options;
  if (!parse_options(call, options)) return;
  const KeyRef key = call.key(1);
  Database database = call.database(key);
  Entry* old = database.find(key);
  if (old != nullptr && !options.replace) {
    return call.reply.error("BUSYKEY Target key name already exists.");
  }
  int64_t expire_ms = 0;
  if (!call.integer(2, expire_ms)) return;
  if (expire_ms < 0) return call.reply.error("ERR Invalid TTL value, must be >= 0");
  OwnedEntry value;
  if (!read_payload(call, value)) return;
  if (!journal_takes_whole(call, key.key, *value)) return;
  if (old != nullptr) database.remove(key, old);
  if (expire_ms != 0) {
    // A time that overflows counts as past, as in Redis.
    if (!options.absolute && __builtin_add_overflow(expire_ms, call.now_ms(), &expire_ms)) {
      expire_ms = 0;
    }
    if (expire_ms <= call.now_ms()) {
      if (old != nullptr) database.notify(KeyEvent::kDel, key.key);
      return call.reply.ok();
    }
  }
  value->set_expire_ms(expire_ms);
  Entry* made = value.get();
  database.put_entry(key, std::move(value));
  if (options.idle_s >= 0) {
    const uint32_t now = Entry::access_second(call.unit.times.steady_ms);
    made->set_access_s(Entry::access_before(now, options.idle_s));
  }
  database.notify(KeyEvent::kRestore, key.key);
  call.reply.ok();
}

}  // namespace sluice
