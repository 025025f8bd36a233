// The fuzzy walk for checkpoints: every key of every shard, a few at a time, with the values at
// that moment. Changes during the walk are in the journal after the walk's beginning.
//
// Keys and elements are visited in the order of their hashes (SplitMap::scan), the members of a
// sorted set in the order of their scores. So whatever does not change during the walk is visited,
// however the maps grow and split. A key or an element that was added, moved or removed meanwhile
// may or may not be visited: its effects are in the log.
#include <deque>
#include <optional>
#include <string>

#include "engine/execution/engine.h"
#include "engine/execution/reload.h"
#include "engine/execution/scripts.h"
#include "engine/keyspace/stream_records.h"
#include "engine/queue/queue.h"
#include "engine/queue/queue_records.h"
#include "engine/unit/effects.h"

namespace sluice {

namespace {

// Limits of a lock hold: keys or elements, and bytes, approximately.
constexpr size_t kMaxElements = 256;
constexpr size_t kMaxBytes = 64 * 1024;
// Elements of a map between two checks of the limits.
constexpr size_t kScanned = 16;

class EngineWalk final : public CheckpointWalk {
 public:
  // `locked`: the caller holds all shards.
  EngineWalk(Engine& engine, bool locked) : engine_(engine), locked_(locked) {}

  bool step(ByteBuffer& records, uint64_t& count) override NO_THREAD_SAFETY_ANALYSIS {
    records_ = &records;
    count_ = &count;
    if (!begun_) write_beginning();
    if (locked_) return step_here(engine_.shard(shard_));
    MutexLock lock(engine_.shard(shard_).mutex);
    return step_here(engine_.shard(shard_));
  }

 private:
  bool step_here(Shard& shard) NO_THREAD_SAFETY_ANALYSIS {
    Keyspace& keys = shard.databases[static_cast<size_t>(database_)];
    if (!large_.empty()) {
      step_large(keys);
    } else {
      step_keys(keys);
    }
    return shard_ < kShards;
  }

  // How far the walk over one value has come.
  struct Progress {
    uint64_t cursor = 0;             // of a scan; in a string, an offset
    int64_t next_index = INT64_MIN;  // lists
    // Sorted sets: the last written member, and its score.
    std::string last_member = {};
    std::optional<double> last_score = {};
    QueueCursor in_queue = {};
    StreamCursor in_stream = {};
  };

  // A value that is too large for one lock hold.
  struct Large {
    std::string key;
    Type type;
    Progress progress;
  };

  EffectEncoder record() {
    ++*count_;
    return EffectEncoder(*records_);
  }

  // Data that belongs to no shard. Later changes are in the log.
  void write_beginning() {
    begun_ = true;
    if (!locked_) write_engine();
    // The effect of SWAPDB.
    const DatabasePlaces places = current_places();
    if (places == places_at_first()) return;
    record().database_places({reinterpret_cast<const char*>(places.data()), places.size()});
  }

  void write_engine() {
    // The floor of deleted queues; deleting others later writes theirs into the log.
    const uint64_t floor = engine_.token_floor.load();
    if (floor > 1) record().token_floor(floor);
    if (const int64_t queue_ms = engine_.queue_clock.latest_ms(); queue_ms != 0) {
      record().queue_time(queue_ms);
    }
    engine_.scripts().for_each_library([&](Bytes name, Bytes functions, Bytes code) {
      record().function_put(name, functions, code);
    });
  }

  // The same in every shard.
  DatabasePlaces current_places() NO_THREAD_SAFETY_ANALYSIS {
    Shard& shard = engine_.shard(0);
    if (locked_) return shard.places;
    MutexLock lock(shard.mutex);
    return shard.places;
  }

  void step_keys(Keyspace& keys) {
    const size_t begin_bytes = records_->size();
    size_t visited = 0;
    do {
      cursor_ = keys.entries.scan(cursor_, 16, [&](Entry* entry) {
        ++visited;
        write_entry(*entry);
      });
    } while (cursor_ != 0 && visited < kMaxElements && records_->size() - begin_bytes < kMaxBytes &&
             large_.empty());
    if (cursor_ == 0 && large_.empty()) next_keyspace();
    at_end_of_keys_ = cursor_ == 0;
  }

  void next_keyspace() {
    at_end_of_keys_ = false;
    if (++database_ < kDatabases) return;
    database_ = 0;
    ++shard_;
  }

  void write_entry(const Entry& entry) {
    value_begins_ = records_->size();
    const Bytes key = entry.key();
    if (entry.type() == Type::kString && entry.string().size() <= kMaxBytes) {
      record().put_string(database_, key, entry.string(), entry.expire_ms());
      return;
    }
    Progress progress;
    if (!write_part(entry, progress)) {
      large_.push_back({std::string(key), entry.type(), std::move(progress)});
    } else if (entry.expire_ms() != 0) {
      record().set_expire(database_, key, entry.expire_ms());
    }
  }

  // Whether the records of the value at hand fill a lock hold.
  bool full() const { return records_->size() - value_begins_ >= kMaxBytes; }

  void step_large(Keyspace& keys) {
    value_begins_ = records_->size();
    Large& large = large_.front();
    const KeyRef key(large.key);
    const Entry* entry = keys.entries.find(key.key, key.hash);
    // If the key was removed or has another type, its present value is newer than the walk's
    // beginning, and is in the log.
    bool done = entry == nullptr || entry->type() != large.type;
    if (!done) {
      done = write_part(*entry, large.progress);
      if (entry->expire_ms() != 0) record().set_expire(database_, large.key, entry->expire_ms());
    }
    if (!done) return;
    large_.pop_front();
    if (large_.empty() && at_end_of_keys_) next_keyspace();
  }

  // Writes what comes next of the value. Returns true at its end.
  bool write_part(const Entry& entry, Progress& progress) {
    const Bytes key = entry.key();
    switch (entry.type()) {
      case Type::kString:
        return write_string(key, entry.string(), progress.cursor);
      case Type::kHash:
        return write_map(entry.object<Hash>().fields, progress.cursor, [&](const Field* field) {
          record().hash_put(database_, key, field->name(), field->value());
        });
      case Type::kSet:
        return write_map(entry.object<Set>().members, progress.cursor, [&](const Member* member) {
          record().set_add(database_, key, member->bytes());
        });
      case Type::kSortedSet:
        return write_sorted(key, entry.object<SortedSet>(), progress);
      case Type::kList:
        return write_list(key, entry.object<List>(), progress.next_index);
      case Type::kStream: {
        const EmitStreamRecord emit = [&](EffectType type, Bytes field, Bytes value) {
          record().stream_record(type, database_, key, field, value);
        };
        return !walk_stream(entry.object<Stream>(), progress.in_stream, kMaxElements, emit);
      }
      case Type::kQueue: {
        const EmitRecord emit = [&](EffectType type, Bytes field, Bytes value) {
          record().queue_record(type, database_, key, field, value);
        };
        return !walk_queue(entry.object<Queue>(), progress.in_queue, kMaxElements, emit);
      }
    }
    CHECK(false && "unknown type");
    return true;
  }

  // Each part has the present length. If the string changes meanwhile, the log has what is new.
  bool write_string(Bytes key, Bytes value, uint64_t& offset) {
    if (offset >= value.size()) return true;
    const Bytes part = value.substr(offset, kMaxBytes);
    record().write_string(database_, key, offset, part, value.size());
    offset += part.size();
    return offset == value.size();
  }

  // A map in order of insertion is written as a whole, to preserve that order, unless it has too
  // many bytes.
  template <class Map, class Write>
  bool write_map(const Map& map, uint64_t& cursor, Write write) {
    if (cursor == 0 && map.is_ordered()) {
      map.for_each([&](const auto* element) {
        if (!full()) write(element);
      });
      if (!full()) return true;
    }
    size_t written = 0;
    do {
      cursor = map.scan(cursor, kScanned, write);
      written += kScanned;
    } while (cursor != 0 && written < kMaxElements && !full());
    return cursor == 0;
  }

  // In order, because loading then only appends, which is far cheaper than inserting in random
  // order. A member that keeps its score keeps its place, so it is never skipped.
  bool write_sorted(Bytes key, const SortedSet& sorted, Progress& progress) {
    auto at = sorted.order.begin();
    if (progress.last_score.has_value()) {
      const uint64_t last_major = SortedSet::major(*progress.last_score);
      const uint64_t last_minor = SortedSet::minor(progress.last_member);
      at = sorted.order.lower_bound_by([&](uint64_t major, uint64_t minor, const ScoredMember* m) {
        if (major != last_major) return major < last_major;
        if (minor != last_minor) return minor < last_minor;
        return m->bytes() <= progress.last_member;
      });
    }
    if (!at.valid()) return true;
    const ScoredMember* last = nullptr;
    size_t left = kMaxElements;
    do {
      last = at.value();
      record().sorted_put(database_, key, last->score(), last->bytes());
      at.next();
    } while (at.valid() && --left != 0 && !full());
    if (!at.valid()) return true;
    progress.last_member = last->bytes();
    progress.last_score = last->score();
    return false;
  }

  bool write_list(Bytes key, const List& list, int64_t& next_index) {
    const int64_t end = list.first_index + static_cast<int64_t>(list.items.size());
    if (next_index < list.first_index) next_index = list.first_index;
    if (next_index >= end) return true;
    size_t left = kMaxElements;
    for (auto at = list.items.iterate(static_cast<size_t>(next_index - list.first_index));
         at.valid() && left != 0 && !full(); at.next(), --left) {
      // The bounds cover only the items written so far, so that loading needs no placeholders.
      const int64_t index = next_index++;
      record().list_put(database_, key, list.first_index,
                        static_cast<uint64_t>(index + 1 - list.first_index), index, at.value());
    }
    return next_index >= end;
  }

  Engine& engine_;
  const bool locked_;
  bool begun_ = false;
  unsigned shard_ = 0;
  int database_ = 0;  // by index
  uint64_t cursor_ = 0;
  bool at_end_of_keys_ = false;
  std::deque<Large> large_;
  size_t value_begins_ = 0;  // in records_, of what this lock hold writes of the value at hand
  ByteBuffer* records_ = nullptr;
  uint64_t* count_ = nullptr;
};

}  // namespace

std::unique_ptr<CheckpointWalk> Engine::begin_walk() {
  return std::make_unique<EngineWalk>(*this, false);
}

std::unique_ptr<CheckpointWalk> begin_locked_walk(Engine& engine) {
  return std::make_unique<EngineWalk>(engine, true);
}

}  // namespace sluice
