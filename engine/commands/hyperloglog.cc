// HyperLogLogs: strings with the encoding of engine/structures/hyperloglog.h.
#include "engine/commands/hyperloglog.h"

#include "engine/execution/call.h"
#include "engine/structures/hyperloglog.h"

namespace sluice {

namespace {

using hyperloglog::Change;

constexpr Bytes kDamaged = "INVALIDOBJ Corrupted HLL object detected";

size_t max_sparse_bytes() { return g_encoding_limits.hll_sparse_max_bytes; }

// The entry, if any. Refused if it is not a HyperLogLog.
Found<Entry> checked(const Call& call, Entry* entry) {
  if (entry != nullptr && entry->type() != Type::kString) {
    call.reply.error(errors::kWrongType);
  } else if (entry != nullptr && !hyperloglog::is_valid(entry->string())) {
    call.reply.error("WRONGTYPE Key is not a valid HyperLogLog string value.");
  } else {
    return entry;
  }
  return Found<Entry>::refusal();
}

void put(Database database, const KeyRef& key, Entry* entry, Bytes value) {
  if (entry != nullptr) return database.change_string(key, entry, value);
  database.put_string(key, nullptr, value, 0);
  database.find(key)->set_string_form(StringForm::kBuffer);
}

// Raises the registers of the elements in `value`, which stays empty as long as it would equal
// `old`.
Change add_elements(std::span<const Bytes> elements, Bytes old, std::string& value) {
  Change result = Change::kNone;
  for (const Bytes element : elements) {
    const hyperloglog::Place place = hyperloglog::place_of(element);
    if (value.empty()) {
      // Mostly nothing changes, and copying a dense value is expensive.
      if (hyperloglog::is_dense(old) &&
          hyperloglog::dense_register(old, place.index) >= place.rank) {
        continue;
      }
      value = old;
    }
    const Change change = hyperloglog::raise_register(value, place, max_sparse_bytes());
    if (change == Change::kDamaged) return change;
    if (change == Change::kChanged) result = change;
  }
  return result;
}

// Merges the values of the arguments from 1 on. Returns false with the error replied.
bool merge_keys(const Call& call, hyperloglog::Registers& registers, bool& any_dense) {
  for (size_t at = 1; at < call.args.size(); ++at) {
    const Found<const Entry> entry = checked(call, call.read(call.key(at)));
    if (entry.refused()) return false;
    if (entry == nullptr) continue;
    any_dense = any_dense || hyperloglog::is_dense(entry->string());
    if (hyperloglog::merge(entry->string(), registers)) continue;
    return fail(call, kDamaged);
  }
  return true;
}

}  // namespace

void pfadd_command(Call& call) {
  const KeyRef key = call.key(1);
  const Found<Entry> entry = checked(call, call.find(key));
  if (entry.refused()) return;
  std::string value = entry == nullptr ? hyperloglog::make_empty() : std::string();
  const Change change =
      add_elements(call.args.subspan(2), entry == nullptr ? Bytes() : entry->string(), value);
  const bool changed = entry == nullptr || change == Change::kChanged;
  if (changed) hyperloglog::forget_count(value);
  Database database = call.database(key);
  if (entry != nullptr) entry->set_string_form(StringForm::kBuffer);
  // Changes before the damage are kept, as in Redis.
  if (changed || (change == Change::kDamaged && Bytes(value) != entry->string())) {
    put(database, key, entry, value);
  }
  if (change == Change::kDamaged) return call.reply.error(kDamaged);
  if (changed) database.notify(KeyEvent::kPfAdd, key.key);
  call.reply.integer(changed ? 1 : 0);
}

void pfcount_command(Call& call) {
  if (call.args.size() > 2) {
    hyperloglog::Registers registers{};
    bool any_dense = false;
    if (!merge_keys(call, registers, any_dense)) return;
    return call.reply.integer(static_cast<int64_t>(hyperloglog::count(registers)));
  }
  const KeyRef key = call.key(1);
  const Found<Entry> entry = checked(call, call.find(key));
  if (entry.refused()) return;
  if (entry == nullptr) return call.reply.integer(0);
  entry->set_string_form(StringForm::kBuffer);
  const Bytes value = entry->string();
  auto count = hyperloglog::last_count(value);
  if (!count) {
    count = hyperloglog::count(value);
    if (!count) return call.reply.error(kDamaged);
    const auto bytes = hyperloglog::encode_count(*count);
    // A standby changes nothing by itself.
    if (!call.unit.paused) {
      call.database(key).write_string(key, entry, hyperloglog::kCountOffset,
                                      {bytes.data(), bytes.size()}, value.size());
    }
  }
  call.reply.integer(static_cast<int64_t>(*count));
}

void pfmerge_command(Call& call) {
  hyperloglog::Registers registers{};
  bool dense = false;
  if (!merge_keys(call, registers, dense)) return;
  const KeyRef key(call.args[1]);
  Database database = call.database(key);
  Entry* entry = database.find(key);
  std::string value = entry == nullptr ? hyperloglog::make_empty() : std::string(entry->string());
  // It was merged just before, so it is not damaged.
  if (dense) hyperloglog::make_dense(value);
  for (uint32_t i = 0; i < hyperloglog::kRegisters; ++i) {
    if (registers[i] == 0) continue;
    hyperloglog::raise_register(value, {i, registers[i]}, max_sparse_bytes());
  }
  hyperloglog::forget_count(value);
  put(database, key, entry, value);
  database.notify(KeyEvent::kPfAdd, key.key);
  call.reply.ok();
}

void pfdebug_command(Call& call) {
  const KeyRef key = call.key(2);
  Entry* found = call.find(key);
  if (found == nullptr) return call.reply.error("ERR The specified key does not exist");
  const Found<Entry> entry = checked(call, found);
  if (entry.refused()) return;
  entry->set_string_form(StringForm::kBuffer);
  std::string value(entry->string());
  const bool sparse = !hyperloglog::is_dense(value);
  const bool registers = call.option(1, "GETREG");
  if (registers || call.option(1, "TODENSE")) {
    if (!hyperloglog::make_dense(value)) return call.reply.error(kDamaged);
    if (sparse) put(call.database(key), key, entry, value);
    if (!registers) return call.reply.integer(sparse ? 1 : 0);
    call.reply.array(hyperloglog::kRegisters);
    for (uint32_t i = 0; i < hyperloglog::kRegisters; ++i) {
      call.reply.integer(hyperloglog::dense_register(value, i));
    }
  } else if (call.option(1, "DECODE")) {
    if (!sparse) return call.reply.error("ERR HLL encoding is not sparse");
    call.reply.bulk(hyperloglog::describe_runs(value));
  } else if (call.option(1, "ENCODING")) {
    call.reply.simple(sparse ? "sparse" : "dense");
  } else {
    call.reply.error("ERR Unknown PFDEBUG subcommand '" + std::string(call.args[1]) + "'");
  }
}

void pfselftest_command(Call& call) {
  const std::string wrong = hyperloglog::self_test();
  wrong.empty() ? call.reply.ok() : call.reply.error("TESTFAILED " + wrong);
}

}  // namespace sluice
