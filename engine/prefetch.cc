#include "engine/prefetch.h"

#include "engine/commands/command.h"
#include "engine/engine.h"
#include "engine/shard.h"

namespace sluice {

void Prefetch::add(Engine& engine, int database,
                   std::span<const Bytes> args) NO_THREAD_SAFETY_ANALYSIS {
  CHECK(count_ < kMaxRequests);
  const Command* command = CommandTable::instance().find(args[0]);
  if (command == nullptr || command->keys[0].begin != KeySpec::Begin::kIndex) return;
  const auto first = static_cast<size_t>(command->keys[0].index);
  if (first >= args.size()) return;
  const KeyRef key(args[first]);
  const Shard& shard = engine.shard(key.shard);
  const Keyspace& keyspace = shard.databases[shard.places[static_cast<size_t>(database)]];
  keyspace.entries.prefetch(key.hash);
  places_[count_++] = {&keyspace, key.hash};
}

void Prefetch::fetch_entries() {
  for (size_t i = 0; i < count_; ++i) places_[i].keyspace->entries.prefetch_node(places_[i].hash);
  count_ = 0;
}

}  // namespace sluice
