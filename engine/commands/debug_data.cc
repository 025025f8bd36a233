// DEBUG's tools that read or change all data.

#include "engine/commands/debug.h"
#include "engine/execution/call.h"
#include "engine/execution/engine.h"
#include "engine/execution/execution.h"
#include "engine/execution/reload.h"
#include "engine/keyspace/digest.h"

namespace sluice {

namespace {

// The number of keys made in one lock hold, and the bytes of their values.
constexpr int64_t kKeysAtOnce = 512;
constexpr size_t kBytesAtOnce = 1U << 20;

// DEBUG's row names no keys, so all shards are locked here. Returns false with the error replied.
bool lock_everything(Call& call) {
  bool locked = !call.engine.replaying.load();
  if (locked && call.nested) {
    locked = call.execution.lock_further(kAllShards);
  } else if (locked) {
    call.execution.release();
    call.execution.lock(kAllShards);
  }
  if (!locked) call.reply.error("ERR the data cannot be read now");
  return locked;
}

// "value:<number>", truncated to `size` or filled up with zeros.
std::string populated_value(int64_t number, size_t size) {
  std::string value = "value:" + std::to_string(number);
  if (size != 0) value.resize(size);
  return value;
}

bool positive(const Call& call, size_t argument, int64_t& value) {
  if (!call.integer(argument, value, errors::kNotPositive)) return false;
  if (value < 0) call.reply.error(errors::kNotPositive);
  return value >= 0;
}

void digest_engine(Engine& engine, Digest& digest) {
  digest.mix(std::to_string(engine.token_floor.load()));
  engine.scripts().for_each_library([&](Bytes name, Bytes functions, Bytes code) {
    Digest library;
    for (const Bytes part : {name, functions, code}) library.mix(part);
    digest.add(library.bytes());
  });
}

}  // namespace

void debug_populate(Call& call) {
  constexpr size_t kMostKeyBytes = 127;
  int64_t count = 0;
  int64_t size = 0;
  if (!positive(call, 2, count) || (call.args.size() == 5 && !positive(call, 4, size))) return;
  const std::string prefix(call.args.size() == 3 ? Bytes("key") : call.args[3]);
  if (call.engine.following.load()) return call.reply.error(errors::kReadOnly);
  if (!lock_everything(call)) return;
  size_t bytes = 0;
  for (int64_t i = 0; i < count; ++i) {
    const std::string name = (prefix + ":" + std::to_string(i)).substr(0, kMostKeyBytes);
    const KeyRef key(name);
    Database database = call.database(key);
    if (database.find(key) != nullptr) continue;
    const std::string value = populated_value(i, static_cast<size_t>(size));
    database.put_string(key, nullptr, value, 0);
    bytes += value.size();
    if (call.nested || ((i + 1) % kKeysAtOnce != 0 && bytes < kBytesAtOnce)) continue;
    // Lets other commands run, and keeps the unit small.
    bytes = 0;
    call.execution.serve_waiters();
    call.execution.release();
    call.execution.lock(kAllShards);
  }
  call.reply.ok();
}

// The order of keys does not matter for the sum of their digests. DIGEST-STATE: with everything
// that is journaled.
void debug_digest(Call& call) {
  const bool state = call.option(1, "DIGEST-STATE");
  if (!lock_everything(call)) return;
  Digest digest;
  for (int number = 0; number < kDatabases; ++number) {
    if (call.engine.key_count(number) == 0) continue;
    digest.mix_number(static_cast<uint32_t>(number));
    for (Shard& shard : call.engine.shards()) {
      Database(shard, number, call.unit).keyspace().entries.for_each([&](const Entry* entry) {
        Digest whole;
        whole.mix(entry->key());
        digest_value(*entry, whole);
        if (state) digest_rest(*entry, whole);
        digest.add(whole.bytes());
      });
    }
  }
  if (state) digest_engine(call.engine, digest);
  call.reply.simple(digest.text());
}

void debug_digest_values(Call& call) {
  if (!lock_everything(call)) return;
  call.unit.access_s = 0;
  call.reply.array(call.args.size() - 2);
  for (size_t at = 2; at < call.args.size(); ++at) {
    Digest digest;
    if (const Entry* entry = call.find(call.key(at))) digest_value(*entry, digest);
    call.reply.simple(digest.text());
  }
}

// LOADAOF does the same: the journal holds all acknowledged changes, and memory holds all of them.
void debug_reload(Call& call) {
  if (call.engine.server().group() != nullptr) {
    return call.reply.error(
        "ERR DEBUG RELOAD and LOADAOF are refused in a group: restart the node instead");
  }
  for (size_t at = 2; at < call.args.size(); ++at) {
    if (call.option(at, "NOSAVE")) {
      return call.reply.error("ERR DEBUG RELOAD NOSAVE is refused: there is no RDB file to load");
    }
    // There is no file with other data, so these two options have no effect.
    if (call.option(at, "MERGE") || call.option(at, "NOFLUSH")) continue;
    return call.reply.error(
        "ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.");
  }
  if (call.nested) return call.reply.error("ERR Command not allowed inside a transaction");
  if (call.engine.following.load()) return call.reply.error(errors::kReadOnly);
  if (!lock_everything(call)) return;
  if (reload_data(call.engine)) return call.reply.ok();
  call.reply.error("ERR Error trying to load the RDB dump, check server logs.");
}

}  // namespace sluice
