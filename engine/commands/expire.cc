// Times to live.
#include "engine/commands/expire_time.h"
#include "engine/commands/keys.h"
#include "engine/execution/call.h"

namespace sluice {

namespace {

struct Conditions {
  bool if_none = false;     // NX
  bool if_some = false;     // XX
  bool if_later = false;    // GT
  bool if_earlier = false;  // LT
};

bool parse_conditions(const Call& call, Conditions& conditions) {
  for (size_t at = 3; at < call.args.size(); ++at) {
    if (call.option(at, "NX")) {
      conditions.if_none = true;
    } else if (call.option(at, "XX")) {
      conditions.if_some = true;
    } else if (call.option(at, "GT")) {
      conditions.if_later = true;
    } else if (call.option(at, "LT")) {
      conditions.if_earlier = true;
    } else {
      return fail(call, "ERR Unsupported option " + std::string(call.args[at]));
    }
  }
  if (conditions.if_none && (conditions.if_some || conditions.if_later || conditions.if_earlier)) {
    return fail(call, "ERR NX and XX, GT or LT options at the same time are not compatible");
  }
  if (conditions.if_later && conditions.if_earlier) {
    return fail(call, "ERR GT and LT options at the same time are not compatible");
  }
  return true;
}

bool holds(const Conditions& conditions, int64_t current_ms, int64_t when_ms) {
  if (conditions.if_none && current_ms != 0) return false;
  if (conditions.if_some && current_ms == 0) return false;
  // A key without expiry counts as expiring after all others.
  if (conditions.if_later && (current_ms == 0 || when_ms <= current_ms)) return false;
  if (conditions.if_earlier && current_ms != 0 && when_ms >= current_ms) return false;
  return true;
}

void expire_generic(Call& call, ExpireUnit unit) {
  Conditions conditions;
  if (!parse_conditions(call, conditions)) return;
  int64_t when_ms = 0;
  if (!call.integer(2, when_ms)) return;
  const bool seconds = unit == ExpireUnit::kSeconds || unit == ExpireUnit::kUnixSeconds;
  const bool relative = unit == ExpireUnit::kSeconds || unit == ExpireUnit::kMilliseconds;
  bool valid = true;
  if (seconds) valid = !__builtin_mul_overflow(when_ms, 1000, &when_ms);
  if (valid && relative) valid = !__builtin_add_overflow(when_ms, call.now_ms(), &when_ms);
  if (!valid) {
    return call.reply.error("ERR invalid expire time in '" + CommandTable::full_name(call.command) +
                            "' command");
  }
  const KeyRef key = call.key(1);
  Database database = call.database(key);
  Entry* entry = database.find(key);
  if (entry == nullptr || !holds(conditions, entry->expire_ms(), when_ms)) {
    return call.reply.integer(0);
  }
  if (when_ms <= call.now_ms()) {
    database.remove(key, entry);
    database.notify(KeyEvent::kDel, key.key);
    return call.reply.integer(1);
  }
  database.set_expire(key, entry, when_ms);
  call.reply.integer(1);
  database.notify(KeyEvent::kExpire, key.key);
}

void reply_time(Call& call, bool milliseconds, bool absolute) {
  const Entry* entry = call.find(call.key(1));
  if (entry == nullptr) return call.reply.integer(-2);
  if (entry->expire_ms() == 0) return call.reply.integer(-1);
  const int64_t ms = absolute ? entry->expire_ms() : entry->expire_ms() - call.now_ms();
  // Unsigned, because rounding up the latest times would overflow.
  call.reply.integer(milliseconds ? ms
                                  : static_cast<int64_t>((static_cast<uint64_t>(ms) + 500) / 1000));
}

}  // namespace

void expire_command(Call& call) { expire_generic(call, ExpireUnit::kSeconds); }
void pexpire_command(Call& call) { expire_generic(call, ExpireUnit::kMilliseconds); }
void expireat_command(Call& call) { expire_generic(call, ExpireUnit::kUnixSeconds); }
void pexpireat_command(Call& call) { expire_generic(call, ExpireUnit::kUnixMilliseconds); }

void ttl_command(Call& call) { reply_time(call, false, false); }
void pttl_command(Call& call) { reply_time(call, true, false); }
void expiretime_command(Call& call) { reply_time(call, false, true); }
void pexpiretime_command(Call& call) { reply_time(call, true, true); }

void persist_command(Call& call) {
  const KeyRef key = call.key(1);
  Database database = call.database(key);
  Entry* entry = database.find(key);
  if (entry == nullptr || entry->expire_ms() == 0) return call.reply.integer(0);
  database.set_expire(key, entry, 0);
  database.notify(KeyEvent::kPersist, key.key);
  call.reply.integer(1);
}

}  // namespace sluice
