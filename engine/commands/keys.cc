// Keys of any type: deleting, renaming, listing, flushing.
#include "engine/commands/keys.h"

#include "engine/clients/tracking.h"
#include "engine/commands/random_number.h"
#include "engine/commands/scan.h"
#include "engine/execution/call.h"
#include "engine/execution/engine.h"
#include "engine/execution/refusal.h"

namespace sluice {

namespace {

void reply_existing(Call& call) {
  int64_t existing = 0;
  for (size_t at = 1; at < call.args.size(); ++at) {
    if (call.find(call.key(at)) != nullptr) ++existing;
  }
  call.reply.integer(existing);
}

// Visits every live key of the client's database, shard by shard. REQUIRES: all shards are locked.
template <class Visit>
void for_each_key(Call& call, Visit visit) {
  for (unsigned shard = 0; shard < kShards; ++shard) {
    Database database(call.engine.shard(shard), call.client.database, call.unit);
    database.keyspace().entries.for_each([&](const Entry* entry) {
      if (entry->expire_ms() == 0 || entry->expire_ms() > call.now_ms()) visit(*entry);
    });
  }
}

void rename_generic(Call& call, bool only_if_absent) {
  const KeyRef from = call.key(1);
  const KeyRef to(call.args[2]);
  Database source = call.database(from);
  Entry* entry = source.find(from);
  if (entry == nullptr) return call.reply.error(errors::kNoSuchKey);
  if (from.key == to.key) {
    return only_if_absent ? call.reply.integer(0) : call.reply.ok();
  }
  Database target = call.database(to);
  if (only_if_absent && target.find(to) != nullptr) return call.reply.integer(0);
  if (!journal_takes_move(call, to.key, *entry)) return;
  source.move(from, entry, target, to);
  source.notify(KeyEvent::kRenameFrom, from.key);
  target.notify(KeyEvent::kRenameTo, to.key);
  only_if_absent ? call.reply.integer(1) : call.reply.ok();
}

// The options SYNC and ASYNC are the same here: memory is always freed in the background.
bool check_flush_options(const Call& call) {
  if (call.args.size() == 1 ||
      (call.args.size() == 2 && (call.option(1, "SYNC") || call.option(1, "ASYNC")))) {
    return true;
  }
  return fail(call, errors::kSyntax);
}

void flush(Call& call, int first, int last, uint8_t recorded) {
  // Called even while no client tracks: earlier ones may have left entries in the table.
  call.engine.tracking().flushed(call.unit);
  Database::record_flush(call.unit, recorded);
  for (unsigned shard = 0; shard < kShards; ++shard) {
    for (int i = first; i <= last; ++i) {
      Database(call.engine.shard(shard), i, call.unit).clear();
    }
  }
  call.reply.ok();
}

}  // namespace

bool journal_takes_move(const Call& call, Bytes to, const Entry& entry) {
  const Journal* const journal = call.unit.journal;
  const bool by_name = journal != nullptr && journal->takes_moves();
  return by_name || journal_takes_whole(call, to, entry);
}

void del_command(Call& call) {
  int64_t deleted = 0;
  for (size_t at = 1; at < call.args.size(); ++at) {
    const KeyRef key = call.key(at);
    Database database = call.database(key);
    Entry* entry = database.find(key);
    if (entry == nullptr) continue;
    database.remove(key, entry);
    database.notify(KeyEvent::kDel, key.key);
    ++deleted;
  }
  call.reply.integer(deleted);
}

void exists_command(Call& call) { reply_existing(call); }
void touch_command(Call& call) { reply_existing(call); }

void type_command(Call& call) {
  const Entry* entry = call.find(call.key(1));
  call.reply.simple(entry == nullptr ? Bytes("none") : type_name(entry->type()));
}

void rename_command(Call& call) { rename_generic(call, false); }
void renamenx_command(Call& call) { rename_generic(call, true); }

void keys_command(Call& call) {
  const Bytes pattern = call.args[1];
  const bool all = pattern == "*";
  const size_t mark = call.reply.open_array();
  size_t count = 0;
  for_each_key(call, [&](const Entry& entry) {
    if (!all && !glob_match(pattern, entry.key())) return;
    call.reply.bulk(entry.key());
    ++count;
  });
  call.reply.close_array(mark, count);
}

void scan_command(Call& call) {
  ScanRequest request;
  if (!parse_scan_cursor(call, 1, request) || !parse_scan_options(call, 2, request)) return;
  // The shard is in the low bits, its map's cursor above: 52 bits, exact in JavaScript, too.
  auto shard = static_cast<unsigned>(request.cursor % kShards);
  uint64_t cursor = request.cursor / kShards;
  std::vector<const Entry*> found;
  for (;;) {
    Database database(call.engine.shard(shard), call.client.database, call.unit);
    cursor = database.keyspace().entries.scan(cursor, request.count - found.size(),
                                              [&](Entry* entry) { found.push_back(entry); });
    if (cursor != 0) break;
    if (++shard == kShards) break;
    if (found.size() >= request.count) break;
  }
  call.reply.array(2);
  reply_cursor(call, shard == kShards ? 0 : cursor * kShards + shard);
  const size_t mark = call.reply.open_array();
  size_t count = 0;
  for (const Entry* entry : found) {
    if (entry->expire_ms() != 0 && entry->expire_ms() <= call.now_ms()) continue;
    if (!request.matches(entry->key())) continue;
    if (request.has_type && !equals_ignore_case(request.type, type_name(entry->type()))) continue;
    call.reply.bulk(entry->key());
    ++count;
  }
  call.reply.close_array(mark, count);
}

void randomkey_command(Call& call) {
  constexpr int kTries = 100;  // for databases whose keys have nearly all expired
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const uint64_t total = call.engine.key_count(call.client.database);
    if (total == 0) return call.reply.null();
    uint64_t chosen = random_number() % total;
    for (unsigned shard = 0; shard < kShards; ++shard) {
      Database database(call.engine.shard(shard), call.client.database, call.unit);
      if (chosen >= database.size()) {
        chosen -= database.size();
        continue;
      }
      const Entry* entry = database.keyspace().entries.random(random_number());
      const std::string name(entry->key());
      if (database.find(KeyRef(name)) != nullptr) return call.reply.bulk(name);
      break;
    }
  }
  call.reply.null();
}

void dbsize_command(Call& call) {
  call.reply.integer(static_cast<int64_t>(call.engine.key_count(call.client.database)));
}

void flushdb_command(Call& call) {
  if (!check_flush_options(call)) return;
  const int number = call.client.database;
  const int index = Database(call.engine.shard(0), number, call.unit).index();
  flush(call, number, number, static_cast<uint8_t>(index));
}

void flushall_command(Call& call) {
  if (!check_flush_options(call)) return;
  flush(call, 0, kDatabases - 1, kAllDatabases);
}

}  // namespace sluice
