// Turns changes of adopted keys into transitions of jobs.
#include <algorithm>
#include <map>
#include <utility>

#include "engine/adopted/adopted_work.h"
#include "engine/base/quoting.h"
#include "engine/keyspace/queue_timers.h"
#include "engine/queue/adopted_records.h"

// The settling unit has locked the shards; see database.cc for why the analysis is off.
namespace sluice {

namespace {

// A change drops this many events that are no longer retained; timers drop the rest.
constexpr size_t kTrimmedEach = 16;
// The id of events about a key instead of a job. No job has it.
constexpr Bytes kWholeKey = "*";

template <class Visit>
void for_each_line(Queue& queue, uint8_t band, Visit visit) {
  visit(queue.stats.all);
  visit(queue.stats.band(band));
}

// Counts members of a key that came or is gone. Those whose band is unknown count in the band
// `rest`.
void count_members(Queue& queue, uint64_t Totals::*total, uint64_t members,
                   const std::map<uint8_t, uint64_t>& by_band, uint8_t rest) {
  const auto count = [&](uint8_t band, uint64_t number) {
    for_each_line(queue, band, [&](StatsLine& line) { line.totals.*total += number; });
    members -= number;
  };
  for (const auto& [band, number] : by_band) count(band, std::min(number, members));
  if (members != 0) count(rest, members);
}

// What the one event for all members of a key tells.
EventFields key_fields(const AdoptedNote& note) {
  EventFields fields;
  fields.add("key", note.name);
  fields.add("members", static_cast<int64_t>(note.members));
  return fields;
}

}  // namespace

struct AdoptedWork::Change {
  struct Pending {
    size_t key;
    bool was_there;
    double old_score;
    double new_score;
  };
  std::shared_ptr<AdoptedGroup> group;
  std::string id;
  bool active_noted = false;
  bool was_active = false;
  std::vector<Pending> pending;  // the first note of each key

  void add(const AdoptedNote& note) {
    if (note.key == kAdoptedActive) {
      if (!active_noted) was_active = note.was_there;
      active_noted = true;
      return;
    }
    if (find(note.key) != nullptr) return;
    pending.push_back({note.key, note.was_there, note.old_score, note.new_score});
  }
  const Pending* find(size_t key) const {
    const auto found = std::find_if(pending.begin(), pending.end(),
                                    [&](const Pending& noted) { return noted.key == key; });
    return found == pending.end() ? nullptr : &*found;
  }

  // All changes of the notes, each member once.
  static std::vector<Change> collect(const std::vector<AdoptedNote>& notes) {
    std::vector<Change> changes;
    std::map<std::pair<const AdoptedGroup*, Bytes>, size_t> numbers;
    for (const AdoptedNote& note : notes) {
      if (note.what != AdoptedNote::What::kMember) continue;
      const auto [at, is_new] =
          numbers.try_emplace({note.group.get(), Bytes(note.name)}, changes.size());
      if (is_new) changes.push_back({note.group, note.name, false, false, {}});
      changes[at->second].add(note);
    }
    return changes;
  }
};

// --- Notes ---

void AdoptedWork::settle() { settle(Cause()); }

void AdoptedWork::settle(const Cause& cause) {
  if (unit_.adopted_notes == nullptr) return;
  std::vector<AdoptedNote> notes = std::exchange(unit_.adopted_notes->notes, {});
  // Before what has become of some of the members since.
  for (const AdoptedNote& note : notes) {
    if (note.what == AdoptedNote::What::kKeyCame && may_settle(note.group)) settle_note(note);
  }
  for (const Change& change : Change::collect(notes)) {
    if (may_settle(change.group)) settle_change(change, cause);
  }
  // After the members: what a key has lost as a whole is the set of members that are missing now.
  for (const AdoptedNote& note : notes) {
    const bool has_been =
        note.what == AdoptedNote::What::kMember || note.what == AdoptedNote::What::kKeyCame;
    if (!has_been && may_settle(note.group)) settle_note(note);
  }
}

bool AdoptedWork::may_settle(const std::shared_ptr<AdoptedGroup>& group) {
  if ((group->shards & ~locked_) == 0) return true;
  state_.look_later(*group);
  return false;
}

void AdoptedWork::settle_note(const AdoptedNote& note) {
  if (note.what == AdoptedNote::What::kQueue) return renamed(note.group);
  Queue* queue = note.group->queue;
  if (queue == nullptr || !shows_keys(*queue)) return;
  if (note.what == AdoptedNote::What::kKeyCame) return key_came(*queue, note);
  if (note.what == AdoptedNote::What::kKeyGone) return key_gone(*queue, note);
  for (const AdoptedWarning& warning : view(*queue).warnings()) {
    warn(state_.key_type, "Queue " + printable_bytes(queue->key) +
                              " has adopted a key of the wrong type: " +
                              printable_bytes(warning.key) + warning.what);
  }
}

// --- Members ---

AdoptedPlace AdoptedWork::place_before(const AdoptedView& keys, const Change& change,
                                       const AdoptedPlace& after) const {
  AdoptedPlace before{change.id};
  before.active = change.active_noted ? change.was_active : after.active;
  const uint64_t hash = hash_bytes(change.id);
  const size_t count = change.group->queue->adopted->definition.pending.size();
  for (size_t key = 0; key < count && !before.pending; ++key) {
    before.key = key;
    if (const Change::Pending* noted = change.find(key)) {
      before.pending = noted->was_there;
      before.score = noted->old_score;
    } else if (const SortedSet* set = keys.pending(key)) {
      const ScoredMember* member = set->members.find(change.id, hash);
      before.pending = member != nullptr;
      if (before.pending) before.score = member->score();
    }
  }
  if (before.pending) before.band = keys.band_of(before.key, before.score);
  return before;
}

void AdoptedWork::settle_change(const Change& change, const Cause& cause) {
  Queue* queue = change.group->queue;
  if (queue == nullptr || !shows_keys(*queue)) return;
  const AdoptedView keys = view(*queue);
  const AdoptedPlace after = keys.find(change.id);
  AdoptedPlace before = place_before(keys, change, after);
  const Cause own = cause.id == change.id ? cause : Cause();
  if (after.active && before.active) return;
  if (after.active) {
    if (!before.pending && !change.pending.empty()) {
      // It was added and taken in one unit.
      const Change::Pending& passed = change.pending.front();
      before.pending = true;
      before.key = passed.key;
      before.score = passed.new_score;
      before.band = keys.band_of(before.key, before.score);
      added(*queue, before);
    }
    started(*queue, before);
  } else if (before.active) {
    after.pending ? came_back(*queue, after, own) : left_active(*queue, change.id, own);
  } else if (after.pending && before.pending) {
    if (after.key == before.key && after.score == before.score) return;
    record(*queue, change.id, EventType::kMoved, {}, queue->adopted->find(change.id));
  } else if (after.pending) {
    added(*queue, after);
  } else if (before.pending) {
    cancelled(*queue, before, own);
  } else {
    return;
  }
  list_queue_timers(home_shard(*queue), *queue);
}

void AdoptedWork::added(Queue& queue, const AdoptedPlace& after) {
  for_each_line(queue, after.band, [](StatsLine& line) { ++line.totals.added; });
  record(queue, after.id, EventType::kAdded, {}, nullptr);
  queue.stats.added.record(queue.queue_ms);
}

void AdoptedWork::started(Queue& queue, const AdoptedPlace& before) {
  touch(queue);
  const AdoptedMember* was_kept = queue.adopted->find(before.id);
  AdoptedMember member;
  member.active = true;
  member.has_place = before.pending;
  member.band = before.pending ? before.band : queue.config.values().default_band;
  member.score = before.score;
  member.since_ms = queue.queue_ms;
  member.since_steady = unit_.times.steady_ms;
  int64_t waits_since_ms = -1;
  if (before.pending) {
    const auto added_ms = view(queue).added_ms(member.band, member.score);
    if (added_ms) waits_since_ms = unit_.times.queue_time_of(*added_ms);
  }
  if (was_kept != nullptr) {
    member.reclaims = was_kept->reclaims;
    if (!was_kept->active) waits_since_ms = std::max(waits_since_ms, was_kept->since_ms);
  }
  EventFields fields;
  fields.add("attempt", static_cast<int64_t>(member.reclaims) + 1);
  const int64_t wait_ms = std::max<int64_t>(0, queue.queue_ms - waits_since_ms);
  if (waits_since_ms >= 0) fields.add("wait_ms", wait_ms);
  for_each_line(queue, member.band, [&](StatsLine& line) {
    ++line.totals.started;
    if (waits_since_ms < 0) return;
    line.wait_ms.record(wait_ms);
    line.recent_wait_ms.record(wait_ms);
  });
  record(queue, before.id, EventType::kStarted, fields, &member);
}

void AdoptedWork::left_active(Queue& queue, Bytes id, const Cause& cause) {
  touch(queue);
  const AdoptedMember* kept = queue.adopted->find(id);
  const uint8_t band = kept == nullptr ? queue.config.values().default_band : kept->band;
  const bool ended_well = cause.event == EventType::kNone;
  EventFields fields;
  if (!ended_well) fields.add("error", cause.reason);
  const int64_t run_ms = kept == nullptr ? -1 : queue.queue_ms - kept->since_ms;
  if (run_ms >= 0) fields.add("run_ms", run_ms);
  for_each_line(queue, band, [&](StatsLine& line) {
    if (!ended_well) {
      ++(cause.event == EventType::kFailed ? line.totals.failed : line.totals.cancelled);
      return;
    }
    ++line.totals.completed;
    if (run_ms < 0) return;
    line.run_ms.record(run_ms);
    line.recent_run_ms.record(run_ms);
  });
  if (ended_well) queue.stats.completed.record(queue.queue_ms);
  record(queue, id, ended_well ? EventType::kCompleted : cause.event, fields, nullptr);
  home(queue).signal_job(queue.key, id);
}

void AdoptedWork::came_back(Queue& queue, const AdoptedPlace& after, const Cause& cause) {
  touch(queue);
  const AdoptedMember* kept = queue.adopted->find(after.id);
  AdoptedMember member;
  if (kept != nullptr) member = *kept;
  EventFields fields;
  if (kept != nullptr) fields.add("run_ms", queue.queue_ms - member.since_ms);
  const bool reclaimed = cause.event == EventType::kReclaimed;
  if (reclaimed) {
    ++member.reclaims;
    for_each_line(queue, member.band, [](StatsLine& line) { ++line.totals.reclaimed; });
  }
  member.active = false;
  member.since_ms = queue.queue_ms;
  member.since_steady = unit_.times.steady_ms;
  record(queue, after.id, reclaimed ? EventType::kReclaimed : EventType::kReturned, fields,
         member.reclaims == 0 ? nullptr : &member);
}

void AdoptedWork::cancelled(Queue& queue, const AdoptedPlace& before, const Cause& cause) {
  for_each_line(queue, before.band, [](StatsLine& line) { ++line.totals.cancelled; });
  EventFields fields;
  if (!cause.reason.empty()) fields.add("error", cause.reason);
  record(queue, before.id, EventType::kCancelled, fields, nullptr);
  home(queue).signal_job(queue.key, before.id);
}

// --- Whole keys ---

void AdoptedWork::key_came(Queue& queue, const AdoptedNote& note) {
  touch(queue);
  if (note.key == kAdoptedActive) {
    count_members(queue, &Totals::started, note.members, {}, queue.config.values().default_band);
    record(queue, kWholeKey, EventType::kStarted, key_fields(note), nullptr);
    state_.look_later(*note.group);
  } else {
    count_members(queue, &Totals::added, note.members, note.by_band,
                  view(queue).band_of(note.key, 0));
    record(queue, kWholeKey, EventType::kAdded, key_fields(note), nullptr);
    queue.stats.added.record(queue.queue_ms, note.members);
  }
  list_queue_timers(home_shard(queue), queue);
}

void AdoptedWork::key_gone(Queue& queue, const AdoptedNote& note) NO_THREAD_SAFETY_ANALYSIS {
  touch(queue);
  const bool active = note.key == kAdoptedActive;
  AdoptedLook look;
  size_t left = kAdoptedAtOnce;
  std::map<uint8_t, uint64_t> dropped = drop_missing(queue, look, left, active);
  if (!look.in_set) {
    // The others are dropped in slices, and counted now.
    for (int band = 0; active && band < kBands; ++band) {
      const uint64_t others = queue.adopted->active_in(static_cast<uint8_t>(band));
      if (others != 0) dropped[static_cast<uint8_t>(band)] += others;
    }
    state_.look_later(*note.group);
  }
  const uint8_t rest =
      active ? queue.config.values().default_band : view(queue).band_of(note.key, 0);
  count_members(queue, &Totals::cancelled, note.members, active ? dropped : note.by_band, rest);
  record(queue, kWholeKey, EventType::kForgotten, key_fields(note), nullptr);
  warn(state_.key_gone, "Key " + printable_bytes(note.name) + ", which queue " +
                            printable_bytes(queue.key) + " has adopted, was removed with " +
                            std::to_string(note.members) +
                            " members (deleted, renamed, flushed or expired): it reads as empty");
  Shard& shard = home_shard(queue);
  list_queue_timers(shard, queue);
  // The jobs in that key for whose end clients wait.
  const QueueWaiters* waiters = shard.waiters.find_queue(home(queue).number(), queue.key);
  if (waiters == nullptr) return;
  const AdoptedView keys = view(queue);
  for (const auto& [id, waiting] : waiters->by_job) {
    if (keys.find(id).is_nowhere()) home(queue).signal_job(queue.key, id);
  }
}

// --- Records ---

// Uses the queue's present key: a unit that has renamed the queue may not have told its group yet.
Shard& AdoptedWork::home_shard(const Queue& queue) { return shard(queue.key); }

Database AdoptedWork::home(const Queue& queue) {
  return Database::at_index(home_shard(queue), queue.database, unit_);
}

void AdoptedWork::touch(Queue& queue) {
  queue.now(unit_.times.queue_ms);
  if (queue.stats.since_ms == 0) queue.stats.since_ms = queue.queue_ms;
  ++unit_.changes;
  home(queue).break_watches(queue.key);
  record_head_at_end(unit_, queue);
}

void AdoptedWork::record_definition(Queue& queue, const AdoptedDefinition* definition) {
  unit_.record_queue(EffectType::kQueueAdoption, queue.database, queue.key, {},
                     [&](ByteBuffer& value) { encode_adopted(definition, value); });
  touch(queue);
}

void AdoptedWork::record(Queue& queue, Bytes id, EventType type, const EventFields& fields,
                         const AdoptedMember* kept) {
  touch(queue);
  RecordedEvent event;
  const Retention& bounds = queue.config.values().events;
  if (type != EventType::kNone && bounds.count == 0) {
    const bool first = queue.events.miss();
    if (first) home(queue).signal_event(queue.key, queue.events.last_seq(), kEveryEventType, id);
  } else if (type != EventType::kNone) {
    event = {type, queue.events.last_seq() + 1, queue.queue_ms, fields.bytes()};
    queue.events.append(event.seq, event.time_ms, event.type, id, event.fields);
    queue.events.trim(bounds, queue.queue_ms, kTrimmedEach);
    home(queue).signal_event(queue.key, event.seq, event_bit(type), id);
  }
  const bool was_kept = queue.adopted->find(id) != nullptr;
  if (event.type == EventType::kNone && kept == nullptr && !was_kept) return;
  unit_.record_queue(EffectType::kAdoptedMember, queue.database, queue.key, id,
                     [&](ByteBuffer& value) { encode_adopted_member(event, kept, value); });
  // If `kept` is the stored record itself, it stays as it is.
  if (kept == nullptr) {
    queue.adopted->erase(id);
  } else if (kept != queue.adopted->find(id)) {
    queue.adopted->put(id, *kept);
  }
}

void AdoptedWork::warn(LogPace& pace, std::string text) {
  const auto others = pace.next(unit_.times.steady_ms);
  if (!others) return;
  if (unit_.adopted_notes == nullptr) unit_.adopted_notes = std::make_shared<AdoptedNotes>();
  unit_.adopted_notes->warnings.push_back(std::move(text) + *others);
}

}  // namespace sluice
