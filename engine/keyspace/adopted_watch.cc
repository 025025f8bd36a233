#include "engine/keyspace/adopted_watch.h"

#include "engine/keyspace/collections.h"
#include "engine/keyspace/shard.h"
#include "engine/queue/adopted_keys.h"
#include "engine/queue/queue.h"
#include "engine/unit/unit.h"

// The calling unit has locked the shard; see database.cc for why the analysis is off.
namespace sluice {

// --- The watched keys of a shard ---

const AdoptedWatch* AdoptedWatches::find(int database, Bytes key) const {
  const auto& keys = keys_[static_cast<size_t>(database)];
  const auto found = keys.find(key);
  return found == keys.end() ? nullptr : &found->second;
}

namespace {

// Commands on a queue also change payloads, which may be in any shard.
uint32_t needed_shards(const AdoptedWatch& watch) {
  return watch.key == kAdoptingQueue ? kAllShards : watch.group->shards;
}

}  // namespace

uint32_t AdoptedWatches::shards_of(Bytes key) const {
  uint32_t shards = 0;
  for (const auto& keys : keys_) {
    if (keys.empty()) continue;
    const auto found = keys.find(key);
    if (found != keys.end()) shards |= needed_shards(found->second);
  }
  return shards;
}

void AdoptedWatches::add(int database, Bytes key, AdoptedWatch watch) {
  auto& keys = keys_[static_cast<size_t>(database)];
  shards_ |= needed_shards(watch);
  if (keys.insert_or_assign(std::string(key), std::move(watch)).second) ++count_;
}

void AdoptedWatches::remove(const AdoptedGroup* group) {
  shards_ = 0;
  count_ = 0;
  for (auto& keys : keys_) {
    std::erase_if(keys, [&](const auto& entry) { return entry.second.group.get() == group; });
    count_ += keys.size();
    for (const auto& [key, watch] : keys) {
      shards_ |= needed_shards(watch);
    }
  }
}

std::shared_ptr<AdoptedGroup> AdoptedWatches::must_look() const {
  for (const auto& keys : keys_) {
    for (const auto& [key, watch] : keys) {
      if (watch.key == kAdoptingQueue && watch.group->must_look()) return watch.group;
    }
  }
  return nullptr;
}

// --- Notes ---

namespace {

const AdoptedWatch* find_watch(Shard& shard, int database, Bytes key) NO_THREAD_SAFETY_ANALYSIS {
  return shard.adopted == nullptr ? nullptr : shard.adopted->find(database, key);
}

// The first note of a command ensures that the notes are processed when the command is done.
void add_note(Shard& shard, Unit& unit, AdoptedNote note) {
  if (unit.adopted_notes == nullptr) unit.adopted_notes = std::make_shared<AdoptedNotes>();
  std::vector<AdoptedNote>& notes = unit.adopted_notes->notes;
  if (notes.empty()) {
    unit.ready.push_back({shard.index, note.group->database, {}, SignalledKey::What::kAdopted, {}});
  }
  notes.push_back(std::move(note));
}

// The numbers of members by band, in O(log n) for each band that has members.
std::map<uint8_t, uint64_t> count_bands(const ScoreBands& bands, const SortedSet& set) {
  std::map<uint8_t, uint64_t> counts;
  for (uint64_t at = 0; at < set.order.size();) {
    const uint8_t band = bands.band_of(set.order.at(at).value()->score());
    const uint64_t end =
        band == kBands - 1 ? set.order.size()
                           : set.order.count_below(SortedSet::major(bands.lowest_score(band + 1)));
    counts[band] = end - at;
    at = end;
  }
  return counts;
}

// Whether the value has the type that the queue reads at this key.
bool is_shown(const AdoptedWatch& watch, const Entry& entry) {
  if (watch.key == kAdoptingQueue) return false;
  return entry.type() == (watch.key == kAdoptedActive ? Type::kSet : Type::kSortedSet);
}

void note_key(Shard& shard, Unit& unit, AdoptedNote::What what, const AdoptedWatch& watch,
              const Entry& entry) {
  AdoptedNote note{what, watch.group, watch.key, std::string(entry.key())};
  note.members = collection_size(entry);
  if (watch.key != kAdoptedActive && watch.group->unit != 0) {
    const ScoreBands bands{watch.group->unit, unit.times.wall_ms};
    note.by_band = count_bands(bands, entry.object<SortedSet>());
  }
  add_note(shard, unit, std::move(note));
}

void note_gone(Shard& shard, Unit& unit, const AdoptedWatch& watch, const Entry& entry) {
  // The last element of a collection has been noted already.
  if (!is_shown(watch, entry) || collection_size(entry) == 0) return;
  note_key(shard, unit, AdoptedNote::What::kKeyGone, watch, entry);
}

}  // namespace

void note_sorted_put(Shard& shard, Unit& unit, int database, Bytes key, Bytes member,
                     const ScoredMember* found, double score) {
  if (unit.notes_whole_key) return;
  const AdoptedWatch* watch = find_watch(shard, database, key);
  if (watch == nullptr || watch->key >= kAdoptedActive) return;
  AdoptedNote note{AdoptedNote::What::kMember, watch->group, watch->key, std::string(member)};
  note.was_there = found != nullptr;
  note.old_score = found == nullptr ? 0 : found->score();
  note.new_score = score;
  add_note(shard, unit, std::move(note));
}

void note_sorted_remove(Shard& shard, Unit& unit, int database, Bytes key,
                        const ScoredMember& member) {
  const AdoptedWatch* watch = find_watch(shard, database, key);
  if (watch == nullptr || watch->key >= kAdoptedActive) return;
  AdoptedNote note{AdoptedNote::What::kMember, watch->group, watch->key,
                   std::string(member.bytes())};
  note.was_there = true;
  note.old_score = note.new_score = member.score();
  add_note(shard, unit, std::move(note));
}

void note_set_change(Shard& shard, Unit& unit, int database, Bytes key, Bytes member, bool came) {
  if (unit.notes_whole_key) return;
  const AdoptedWatch* watch = find_watch(shard, database, key);
  if (watch == nullptr || watch->key != kAdoptedActive) return;
  AdoptedNote note{AdoptedNote::What::kMember, watch->group, watch->key, std::string(member)};
  note.was_there = !came;
  add_note(shard, unit, std::move(note));
}

void note_whole_key(Shard& shard, Unit& unit, int database, const Entry& entry) {
  const AdoptedWatch* watch = find_watch(shard, database, entry.key());
  if (watch == nullptr || !is_shown(*watch, entry)) return;
  if (collection_size(entry) > kAdoptedAtOnce) {
    return note_key(shard, unit, AdoptedNote::What::kKeyCame, *watch, entry);
  }
  if (entry.type() == Type::kSet) {
    return entry.object<Set>().members.for_each([&](const Member* member) {
      note_set_change(shard, unit, database, entry.key(), member->bytes(), true);
    });
  }
  entry.object<SortedSet>().members.for_each([&](const ScoredMember* member) {
    note_sorted_put(shard, unit, database, entry.key(), member->bytes(), nullptr, member->score());
  });
}

void note_new_key(Shard& shard, Unit& unit, int database, const Entry& entry) {
  const AdoptedWatch* watch = find_watch(shard, database, entry.key());
  if (watch == nullptr || watch->key == kAdoptingQueue) return;
  const Type wanted = watch->key == kAdoptedActive ? Type::kSet : Type::kSortedSet;
  if (entry.type() == wanted) return;
  add_note(shard, unit,
           {AdoptedNote::What::kOtherType, watch->group, watch->key, std::string(entry.key())});
}

void note_key_gone(Shard& shard, Unit& unit, int database, const Entry& entry) {
  const AdoptedWatch* watch = find_watch(shard, database, entry.key());
  if (watch != nullptr) note_gone(shard, unit, *watch, entry);
}

void note_flush(Shard& shard, Unit& unit, int database) NO_THREAD_SAFETY_ANALYSIS {
  const auto& entries = shard.databases[static_cast<size_t>(database)].entries;
  for (const auto& [name, watch] : shard.adopted->keys(database)) {
    const KeyRef key(name);
    const Entry* entry = entries.find(key.key, key.hash);
    if (entry != nullptr) note_gone(shard, unit, watch, *entry);
  }
}

void note_queue_gone(Shard& shard, Unit& unit, Queue& queue) {
  const std::shared_ptr<AdoptedGroup> group = queue.adopted->group;
  group->queue = nullptr;
  add_note(shard, unit, {AdoptedNote::What::kQueue, group, kAdoptingQueue, queue.key});
}

void note_queue_moved(Shard& target, Unit& unit, Queue& queue) {
  add_note(target, unit,
           {AdoptedNote::What::kQueue, queue.adopted->group, kAdoptingQueue, queue.key});
}

}  // namespace sluice
