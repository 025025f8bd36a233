#include "engine/execution/call.h"

#include <atomic>
#include <cmath>

#include "engine/base/numbers.h"
#include "engine/execution/engine.h"
#include "engine/execution/execution.h"

namespace sluice {

Database Call::database(const KeyRef& key, int index) const {
  CHECK((execution.locked() & (1U << key.shard)) != 0);
  return Database(engine.shard(key.shard), index, unit);
}

Entry* Call::find(const KeyRef& key) const {
  return (command.flags & kReadonly) != 0 ? read(key) : database(key).find(key);
}

Entry* Call::read(const KeyRef& key) const {
  Database keys = database(key);
  Entry* entry = keys.find(key);
  execution.statistics.count_lookup(entry != nullptr);
  if (entry == nullptr) keys.notify(KeyEvent::kKeyMiss, key.key);
  return entry;
}

namespace {

Found<Entry> of_type(Entry* entry, Type type, Reply& reply) {
  if (entry == nullptr || entry->type() == type) return entry;
  reply.error(errors::kWrongType);
  return Found<Entry>::refusal();
}

}  // namespace

Found<Entry> Call::find(const KeyRef& key, Type type) const {
  return of_type(find(key), type, reply);
}

Found<Entry> Call::read(const KeyRef& key, Type type) const {
  return of_type(read(key), type, reply);
}

Entry* Call::find_or_create(const KeyRef& key, Type type) const {
  const Found<Entry> entry = find(key, type);
  if (entry.refused() || entry != nullptr) return entry;
  return database(key).create(key, type);
}

bool Call::integer(size_t argument, int64_t& value, Bytes error) const {
  const auto parsed = parse_i64(args[argument]);
  if (!parsed) return fail(*this, error);
  value = *parsed;
  return true;
}

bool Call::real(size_t argument, double& value, Bytes error) const {
  const auto parsed = parse_double(args[argument]);
  if (!parsed) return fail(*this, error);
  value = *parsed;
  return true;
}

bool Call::database_number(size_t argument, int& number) const {
  int64_t value = 0;
  if (!integer(argument, value)) return false;
  if (value < INT32_MIN || value > INT32_MAX) {
    return fail(*this, "ERR value is out of range, value must between -2147483648 and 2147483647");
  }
  if (value < 0 || value >= kDatabases) return fail(*this, "ERR DB index is out of range");
  number = static_cast<int>(value);
  return true;
}

void Call::block(std::span<const Bytes> keys, Type wanted, int64_t timeout_ms,
                 void (*serve)(Call& call, Bytes key), bool other_shards) {
  auto blocked = std::make_shared<Waiter>();
  blocked->wanted = wanted;
  blocked->serve = serve;
  blocked->other_shards = other_shards;
  blocked->timeout_ms = timeout_ms;
  block(keys, std::move(blocked));
}

void Call::block(std::span<const Bytes> keys, std::shared_ptr<Waiter> blocked) {
  CHECK(!nested && client.waiter == nullptr);
  // Waiters at the same key get their numbers under its shard's lock, so in their order of arrival.
  static std::atomic<uint64_t> next_order{1};
  blocked->order = next_order.fetch_add(1, std::memory_order_relaxed);
  blocked->port = client.port;
  blocked->command = &command;
  blocked->arguments.assign(args.begin(), args.end());
  blocked->database = client.database;
  blocked->protocol = client.protocol;
  blocked->client_id = client.id;
  if (blocked->wanted == Type::kQueue) blocked->user = client.user;
  for (const Bytes key : keys) {
    std::string name(key);
    Shard& shard = engine.shard(KeyRef(key).shard);
    shard.mutex.assert_held();
    // A key that is named twice is waited at once; otherwise it would be served twice.
    if (shard.waiters.add(name, blocked)) blocked->keys.push_back(std::move(name));
  }
  client.waiter = std::move(blocked);
}

bool parse_timeout(const Call& call, size_t argument, int64_t& timeout_ms) {
  // Whole seconds are usual, and rounding a long double takes longer than the rest of a command.
  const auto whole_seconds = parse_i64(call.args[argument]);
  if (whole_seconds && *whole_seconds >= 0 && *whole_seconds <= INT64_MAX / 1000) {
    timeout_ms = *whole_seconds * 1000;
    return true;
  }
  const auto seconds = parse_long_double(call.args[argument]);
  if (!seconds) return fail(call, "ERR timeout is not a float or out of range");
  const long double ms = *seconds * 1000;
  // In Redis a value that does not fit into 64 bits overflows to a negative time and is reported as
  // negative.
  const bool fits = ms < static_cast<long double>(INT64_MAX);
  if (fits) timeout_ms = static_cast<int64_t>(std::ceil(ms));
  if (!fits || timeout_ms < 0) return fail(call, "ERR timeout is negative");
  return true;
}

}  // namespace sluice
