#include "engine/execution/prefetch.h"

#include "engine/base/hash.h"
#include "engine/execution/engine.h"
#include "engine/execution/request.h"
#include "engine/keyspace/shard.h"
#include "engine/table/command.h"

namespace sluice {

void Prefetch::add(Engine& engine, int database, Request& request) NO_THREAD_SAFETY_ANALYSIS {
  CHECK(count_ < kMaxRequests);
  const Command* const command = request.command;
  if (command == nullptr) return;
  const std::span<const Bytes> args = request.args;
  size_t first = only_key_argument(*command, args);
  if (first == 0) {
    const KeySpec& keys = command->keys[0];
    if (keys.begin != KeySpec::Begin::kIndex || keys.find != KeySpec::Find::kRange) return;
    first = static_cast<size_t>(keys.index);
  }
  if (first >= args.size()) return;
  const KeyRef& key = request.first_key = KeyRef(args[first]);
  const Shard& shard = engine.shard(key.shard);
  const Keyspace& keyspace = shard.databases[shard.places[static_cast<size_t>(database)]];
  keyspace.entries.prefetch(key.hash);
  const size_t element = command->element_argument;
  places_[count_++] = {.keyspace = &keyspace,
                       .hash = key.hash,
                       .key = key.key,
                       .element = element != 0 && element < args.size() ? args[element] : Bytes(),
                       .found = {}};
}

void Prefetch::fetch() {
  const auto places = std::span(places_).first(count_);
  count_ = 0;
  for (const Place& place : places) place.keyspace->entries.prefetch_node(place.hash);
  for (Place& place : places) {
    if (place.element.empty()) continue;
    const Entry* entry = place.keyspace->entries.find(place.key, place.hash);
    if (entry == nullptr) continue;
    place.found = {entry, hash_bytes(place.element)};
    place.found.prefetch();
  }
  for (const Place& place : places) place.found.prefetch_node();
}

}  // namespace sluice
