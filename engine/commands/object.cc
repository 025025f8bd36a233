// OBJECT: Redis's encoding of a value, and its idle time.
#include "engine/base/numbers.h"
#include "engine/commands/keys.h"
#include "engine/execution/call.h"
#include "engine/execution/execution.h"

namespace sluice {

namespace {

// Longer texts have a separate allocation in Redis.
constexpr size_t kMaxEmbedded = 44;
// In Redis smaller integers are objects that all keys share.
constexpr int64_t kSharedIntegers = 10000;
constexpr int64_t kSharedReferences = INT32_MAX;

bool is_integer_string(const Entry& entry) {
  return entry.string_form() == StringForm::kByText && is_integer_text(entry.string());
}

Bytes string_encoding(const Entry& entry) {
  if (entry.string_form() == StringForm::kBuffer) return "raw";
  if (is_integer_string(entry)) return "int";
  return entry.string().size() <= kMaxEmbedded ? "embstr" : "raw";
}

// The entry of the key, or null with a null replied. No event for a miss.
const Entry* look_up(Call& call) {
  const KeyRef key = call.key(2);
  const Entry* entry = call.database(key).find(key);
  call.execution.statistics.count_lookup(entry != nullptr);
  if (entry == nullptr) call.reply.null();
  return entry;
}

}  // namespace

Bytes encoding_name(const Entry& entry) {
  switch (entry.type()) {
    case Type::kString:
      return string_encoding(entry);
    case Type::kList:
      return "quicklist";
    case Type::kSet:
      return entry.object<Set>().intset ? "intset" : "hashtable";
    case Type::kSortedSet:
      return entry.object<SortedSet>().listpack ? "listpack" : "skiplist";
    case Type::kHash:
      return entry.object<Hash>().listpack ? "listpack" : "hashtable";
    case Type::kStream:
      return "stream";
    case Type::kQueue:
      return "queue";
  }
  return "unknown";
}

void object_encoding_command(Call& call) {
  if (const Entry* entry = look_up(call)) call.reply.bulk(encoding_name(*entry));
}

int64_t reference_count(const Entry& entry) {
  if (entry.type() != Type::kString || !is_integer_string(entry)) return 1;
  const int64_t value = *parse_i64(entry.string());
  return value >= 0 && value < kSharedIntegers ? kSharedReferences : 1;
}

void object_refcount_command(Call& call) {
  if (const Entry* entry = look_up(call)) call.reply.integer(reference_count(*entry));
}

void object_idletime_command(Call& call) {
  const Entry* entry = look_up(call);
  if (entry == nullptr) return;
  call.reply.integer(entry->idle_s(Entry::access_second(call.unit.times.steady_ms)));
}

void object_freq_command(Call& call) {
  if (look_up(call) == nullptr) return;
  call.reply.error(
      "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that "
      "when switching between policies at runtime LRU and LFU data will take some time to adjust.");
}

}  // namespace sluice
