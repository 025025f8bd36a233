// COPY, MOVE, SWAPDB: keys in other databases.
#include "engine/work/copy.h"
#include "engine/base/numbers.h"
#include "engine/commands/keys.h"
#include "engine/execution/call.h"
#include "engine/execution/engine.h"
#include "engine/execution/refusal.h"
#include "engine/queue/queue.h"
#include "engine/queue/queue_error.h"

namespace sluice {

namespace {

constexpr Bytes kSameObject = "ERR source and destination objects are the same";

struct CopyOptions {
  int database = 0;
  bool replace = false;
};

bool parse_copy_options(const Call& call, CopyOptions& options) {
  options.database = call.client.database;
  for (size_t at = 3; at < call.args.size(); ++at) {
    if (call.option(at, "REPLACE")) {
      options.replace = true;
    } else if (call.option(at, "DB") && at + 1 < call.args.size()) {
      if (!call.database_number(++at, options.database)) return false;
    } else {
      return fail(call, errors::kSyntax);
    }
  }
  return true;
}

// Parses an argument of SWAPDB; `place` is "first" or "second".
bool parse_swapped(const Call& call, size_t argument, Bytes place, int& database) {
  const auto number = parse_i64(call.args[argument]);
  if (!number || *number < INT32_MIN || *number > INT32_MAX) {
    return fail(call, "ERR invalid " + std::string(place) + " DB index");
  }
  database = static_cast<int>(*number);
  return true;
}

// Copies the configuration and the live jobs of a queue to `to`, replacing its value.
void copy_queue(const Call& call, const Entry& from, Database target, const KeyRef& to) {
  if (Entry* old = target.find(to)) target.remove(to, old);
  Entry* made = target.create(to, Type::kQueue);
  {
    QueueWork work(target, to, made->object<Queue>(), call.unit);
    copy_into(work, from.object<Queue>());
  }
  if (from.expire_ms() != 0) target.set_expire(to, made, from.expire_ms());
}

bool is_database(int number) { return number >= 0 && number < kDatabases; }

}  // namespace

void copy_command(Call& call) {
  CopyOptions options;
  if (!parse_copy_options(call, options)) return;
  const KeyRef from = call.key(1);
  const KeyRef to(call.args[2]);
  if (from.key == to.key && options.database == call.client.database) {
    return call.reply.error(kSameObject);
  }
  Database source = call.database(from);
  Entry* entry = call.read(from);
  if (entry == nullptr) return call.reply.integer(0);
  Database target = call.database(to, options.database);
  if (target.find(to) != nullptr && !options.replace) return call.reply.integer(0);
  if (entry->type() == Type::kQueue) {
    const uint64_t limit = exceeded_copy_limit(entry->object<Queue>());
    if (limit != 0) return call.reply.error(QueueError("TOOBIG").with("limit", limit).text());
    copy_queue(call, *entry, target, to);
  } else if (journal_takes_whole(call, to.key, *entry)) {
    source.copy(entry, target, to);
  } else {
    return;
  }
  target.notify(KeyEvent::kCopyTo, to.key);
  call.reply.integer(1);
}

void move_command(Call& call) {
  int database = 0;
  if (!call.database_number(2, database)) return;
  if (database == call.client.database) return call.reply.error(kSameObject);
  const KeyRef key = call.key(1);
  Database source = call.database(key);
  Entry* entry = source.find(key);
  Database target = call.database(key, database);
  if (entry == nullptr || target.find(key) != nullptr) return call.reply.integer(0);
  if (!journal_takes_move(call, key.key, *entry)) return;
  source.move(key, entry, target, key);
  source.notify(KeyEvent::kMoveFrom, key.key);
  target.notify(KeyEvent::kMoveTo, key.key);
  call.reply.integer(1);
}

void swapdb_command(Call& call) {
  int first = 0;
  int second = 0;
  if (!parse_swapped(call, 1, "first", first) || !parse_swapped(call, 2, "second", second)) return;
  if (!is_database(first) || !is_database(second)) {
    return call.reply.error("ERR DB index is out of range");
  }
  if (first != second) {
    for (unsigned shard = 0; shard < kShards; ++shard) {
      Database::swap(call.engine.shard(shard), first, second, call.unit);
    }
    Database::record_places(call.unit, call.engine.shard(0));
    ++call.unit.changes;
  }
  call.reply.ok();
}

}  // namespace sluice
