// Q.ADOPT, and changes of the keys by Q.MOVE, Q.CANCEL and leases.
#include "engine/adopted/adopted_work.h"

#include <algorithm>

#include "engine/access/acl.h"
#include "engine/base/quoting.h"
#include "engine/keyspace/queue_timers.h"
#include "engine/table/command.h"

// The calling unit has locked all shards; see database.cc for why the analysis is off.
namespace sluice {

// --- Watching ---

void AdoptedWork::watch(Queue& queue) NO_THREAD_SAFETY_ANALYSIS {
  const std::shared_ptr<AdoptedGroup>& group = queue.adopted->group;
  const AdoptedDefinition& definition = queue.adopted->definition;
  group->queue = &queue;
  group->database = queue.database;
  group->unit = definition.unit;
  group->home = KeyRef(queue.key).shard;
  group->shards = 1U << group->home | 1U << KeyRef(definition.active).shard;
  for (const std::string& key : definition.pending) group->shards |= 1U << KeyRef(key).shard;
  const auto add = [&](const std::string& key, size_t number) NO_THREAD_SAFETY_ANALYSIS {
    std::unique_ptr<AdoptedWatches>& watches = shard(key).adopted;
    if (watches == nullptr) watches = std::make_unique<AdoptedWatches>();
    watches->add(group->database, key, {group, number});
  };
  add(queue.key, kAdoptingQueue);
  add(definition.active, kAdoptedActive);
  for (size_t i = 0; i < definition.pending.size(); ++i) add(definition.pending[i], i);
  state_.queues.fetch_add(1, std::memory_order_relaxed);
  state_.look_later(*group);
}

void AdoptedWork::unwatch(const std::shared_ptr<AdoptedGroup>& group) NO_THREAD_SAFETY_ANALYSIS {
  if (group->shards == 0) return;  // it is no longer watched
  for (Shard& shard : state_.shards) {
    if (shard.adopted == nullptr) continue;
    shard.adopted->remove(group.get());
    if (shard.adopted->empty()) shard.adopted = nullptr;
  }
  group->shards = 0;
  state_.queues.fetch_sub(1, std::memory_order_relaxed);
}

const AdoptedWatch* AdoptedWork::watch_of(int index, Bytes key) NO_THREAD_SAFETY_ANALYSIS {
  const AdoptedWatches* watches = shard(key).adopted.get();
  return watches == nullptr ? nullptr : watches->find(index, key);
}

Queue* AdoptedWork::adopter_of(int index, Bytes key) {
  const AdoptedWatch* watch = watch_of(index, key);
  return watch == nullptr || watch->key == kAdoptingQueue ? nullptr : watch->group->queue;
}

// The queue's own key was deleted or renamed.
void AdoptedWork::renamed(const std::shared_ptr<AdoptedGroup>& group) {
  // The shards that it needs may have changed. A command on the queue itself locks all shards.
  if (locked_ != kAllShards) return state_.look_later(*group);
  unwatch(group);
  Queue* queue = group->queue;
  if (queue == nullptr) {
    return warn(
        state_.queue_gone,
        "A queue that had adopted Redis keys was removed (deleted, flushed or expired); the "
        "keys are unchanged");
  }
  touch(*queue);
  if (can_watch(*queue)) {
    // In another database the same names are other keys.
    watch(*queue);
    return look_on(group);
  }
  warn(state_.adoption_ended,
       "Queue " + printable_bytes(queue->key) +
           " has lost its adopted keys: with its new name or database, one of them would be the "
           "queue itself, or belong to another queue that has adopted keys");
  drop_definition(*queue);
}

void AdoptedWork::drop_definition(Queue& queue) {
  unwatch(queue.adopted->group);
  queue.adopted->group->queue = nullptr;
  record_definition(queue, nullptr);
  queue.adopted = nullptr;
}

bool AdoptedWork::can_watch(const Queue& queue) {
  const AdoptedDefinition& definition = queue.adopted->definition;
  if (definition.names(queue.key)) return false;
  // Free: not watched, or watched by a queue that was deleted in this unit.
  const auto is_free = [&](const std::string& key) {
    const AdoptedWatch* watch = watch_of(queue.database, key);
    return watch == nullptr || watch->group->queue == nullptr;
  };
  return is_free(queue.key) && is_free(definition.active) &&
         std::all_of(definition.pending.begin(), definition.pending.end(), is_free);
}

// --- Q.ADOPT ---

void AdoptedWork::adopt(Queue& queue, AdoptedDefinition definition) {
  settle();
  touch(queue);
  if (queue.adopted != nullptr) {
    unwatch(queue.adopted->group);
    if (queue.adopted->definition.active != definition.active) drop_definition(queue);
  }
  if (queue.adopted == nullptr) queue.adopted = std::make_unique<AdoptedKeys>();
  queue.adopted->definition = std::move(definition);
  record_definition(queue, &queue.adopted->definition);
  watch(queue);
  look_on(queue.adopted->group);
}

void AdoptedWork::end(Queue& queue) {
  settle();
  if (!shows_keys(queue)) return;
  drop_definition(queue);
  list_queue_timers(home_shard(queue), queue);
}

// --- Looking at the keys ---

void AdoptedWork::look_on(const std::shared_ptr<AdoptedGroup>& group) {
  if (group->queue == nullptr) return unwatch(group);
  Queue& queue = *group->queue;
  AdoptedLook& look = group->look;
  if (group->missed.exchange(false)) look = {.open = true};
  size_t left = kAdoptedAtOnce;
  if (!look.in_set) drop_missing(queue, look, left);
  const Set* active = view(queue).active();
  if (active == nullptr && look.in_set) look.open = false;
  if (active != nullptr && look.in_set && left != 0) {
    // Members that are already in the active set count as active from now on.
    look.cursor = active->members.scan(look.cursor, left, [&](const Member* found) {
      const AdoptedMember* kept = queue.adopted->find(found->bytes());
      if (kept != nullptr && kept->active) return;
      AdoptedMember member;
      member.active = true;
      member.band = queue.config.values().default_band;
      member.reclaims = kept == nullptr ? 0 : kept->reclaims;
      member.since_ms = queue.queue_ms;
      member.since_steady = unit_.times.steady_ms;
      record(queue, found->bytes(), EventType::kNone, {}, &member);
    });
    look.open = look.cursor != 0;
  }
  Shard& shard = home_shard(queue);
  list_queue_timers(shard, queue);
  if (look.open) shard.next_due_steady_ms.store(0, std::memory_order_release);
}

std::map<uint8_t, uint64_t> AdoptedWork::drop_missing(Queue& queue, AdoptedLook& look, size_t& left,
                                                      std::optional<bool> active) {
  const AdoptedView keys = view(queue);
  const AdoptedKeys::Members& members = queue.adopted->members();
  std::vector<std::string> gone;
  std::map<uint8_t, uint64_t> by_band;
  auto at = look.last ? members.upper_bound(*look.last) : members.begin();
  for (; at != members.end() && left != 0; ++at, --left) {
    const auto& [id, member] = *at;
    look.last = id;
    if (active && member.active != *active) continue;
    const AdoptedPlace place = keys.find(id);
    if (member.active ? place.active : place.pending) continue;
    gone.push_back(id);
    ++by_band[member.band];
  }
  look.in_set = at == members.end();
  for (const std::string& id : gone) record(queue, id, EventType::kNone, {}, nullptr);
  return by_band;
}

// --- Payloads ---

// Whether the user that adopted the keys may write this one now, as in a command of that user.
bool AdoptedWork::adopter_may_write(const Queue& queue, Bytes key) {
  const std::string& name = queue.adopted->definition.adopter;
  const std::shared_ptr<User> user = name.empty() ? nullptr : state_.acl.find(name);
  if (user == nullptr) return false;
  const std::shared_ptr<const AclRules> rules = user->rules();
  const Bytes args[] = {"q.adopt", queue.key, "OFF"};
  const Command* command = CommandTable::instance().find(args[0]);
  return rules->enabled() && rules->may_use_key(*command, args, key, kMayWrite);
}

void AdoptedWork::remove_lost_payload(const Queue& queue, Bytes id) {
  AdoptedEdits edits = edits_of(queue);
  const std::optional<std::string> name = edits.find_payload(id);
  if (!name) return;
  if (adopter_may_write(queue, *name)) return edits.remove_payload(*name);
  const std::string& adopter = queue.adopted->definition.adopter;
  warn(state_.payload_stays,
       "Payload " + printable_bytes(*name) + " of a job of queue " + printable_bytes(queue.key) +
           " is kept, although the job's lease has expired: " +
           (adopter.empty() ? "it is unknown which user adopted the keys; repeat Q.ADOPT to set it"
                            : "user " + printable_bytes(adopter) +
                                  ", who adopted the keys, has no permission to delete it"));
}

// --- Q.MOVE ---

std::optional<uint64_t> AdoptedWork::move(Queue& queue, Bytes id, const Move& move) {
  settle();
  if (!shows_keys(queue)) return std::nullopt;
  const AdoptedView keys = view(queue);
  const AdoptedPlace place = keys.find(id);
  if (place.active || !place.pending) return std::nullopt;
  const uint8_t band = move.band.value_or(place.band);
  const size_t key = queue.adopted->definition.key_of(band);
  const auto unit = static_cast<double>(queue.adopted->definition.unit);
  double score = place.score + unit * (static_cast<int>(band) - static_cast<int>(place.band));
  if (move.front) score = keys.front_score(place, band, score);
  if (move.back) score = keys.back_score(place, band, score);
  AdoptedEdits edits = edits_of(queue);
  if (key != place.key) edits.remove_pending(place.key, id);
  if (key != place.key || score != place.score) edits.put_pending(key, id, score);
  settle();
  return keys.position(keys.find(id));
}

// --- Q.CANCEL ---

bool AdoptedWork::cancel(Queue& queue, Bytes id, Bytes reason) {
  settle();
  if (!shows_keys(queue)) return false;
  AdoptedEdits edits = edits_of(queue);
  bool found = edits.remove_active(id);
  for (size_t key = 0; key < queue.adopted->definition.pending.size(); ++key) {
    if (edits.remove_pending(key, id)) found = true;
  }
  if (!found) return false;
  if (const auto payload = edits.find_payload(id)) edits.remove_payload(*payload);
  settle({id, EventType::kCancelled, reason.empty() ? Bytes("cancelled") : reason});
  return true;
}

// --- Leases ---

void AdoptedWork::run_leases(Queue& queue, size_t limit) {
  settle();
  for (; limit != 0 && shows_keys(queue); --limit) {
    const AdoptedKeys& adopted = *queue.adopted;
    if (adopted.next_due_steady() > unit_.times.steady_ms) return;
    reclaim(queue, std::string(adopted.leases().front().value->first));
  }
}

void AdoptedWork::reclaim(Queue& queue, const std::string& id) {
  const AdoptedMember* kept = queue.adopted->find(id);
  if (kept == nullptr) return;
  const AdoptedMember member = *kept;
  AdoptedEdits edits = edits_of(queue);
  if (!edits.remove_active(id)) return record(queue, id, EventType::kNone, {}, nullptr);
  const AdoptedView keys = view(queue);
  const size_t key = queue.adopted->definition.key_of(member.band);
  if (edits.can_put_pending(key) && member.reclaims == 0) {
    if (!keys.find(id).pending) {
      const double score = member.has_place
                               ? member.score
                               : keys.score_of(member.band, unit_.times.shown_ms(member.since_ms));
      edits.put_pending(key, id, score);
    }
    return settle({id, EventType::kReclaimed});
  }
  for (size_t i = 0; i < queue.adopted->definition.pending.size(); ++i) {
    edits.remove_pending(i, id);
  }
  remove_lost_payload(queue, id);
  settle({id, EventType::kFailed, "lease lost"});
  warn(state_.lease_lost, "The lease of job " + printable_bytes(id) + " of queue " +
                              printable_bytes(queue.key) +
                              " has expired again: the job is removed");
}

}  // namespace sluice
