#include "engine/queue/lanes.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/check.h"

namespace sluice {

namespace {

// Weights are added as integers, so that adding and subtracting leaves no remainder.
constexpr double kWeightUnits = 1e6;

uint64_t address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

}  // namespace

Lanes::~Lanes() {
  lanes_.for_each([](Lane* lane) { delete lane; });
  groups_.for_each([](Group* group) {
    for (BandClass* own : group->own) delete own;
    delete group;
  });
  keys_.for_each([](Key* key) { delete key; });
}

// --- Groups, keys, lanes ---

int64_t Lanes::revive_rate(ConfigLevel level, Bytes name) {
  const int64_t arrival_us = idle_rates_.take(level, name);
  if (arrival_us != 0) revived_ = true;
  return arrival_us;
}

Group* Lanes::join_group(Bytes name) {
  const uint64_t hash = hash_bytes(name);
  if (Group* group = groups_.find(name, hash)) return group;
  auto* group = new Group();
  group->name = name;
  group->limiter.arrival_us = revive_rate(ConfigLevel::kGroup, name);
  if (const auto share = absent_shares_.find(group->name); share != absent_shares_.end()) {
    group->virtual_ms = share->second;
    absent_shares_.erase(share);
  }
  apply_config(group);
  groups_.insert(group, hash);
  return group;
}

KeySet* Lanes::join_keys(std::span<const Bytes> names, int64_t now_ms) {
  if (names.empty() && no_keys_ != nullptr) return no_keys_;
  if (names.size() == 1) {
    const Key* key = keys_.find(names[0]);
    if (key != nullptr && key->alone != nullptr) return key->alone;
  }
  std::vector<std::string> sorted(names.begin(), names.end());
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  std::unique_ptr<KeySet>& set = key_sets_[sorted];
  if (set != nullptr) return set.get();
  set = std::make_unique<KeySet>();
  for (const std::string& name : sorted) {
    const uint64_t hash = hash_bytes(name);
    Key* key = keys_.find(name, hash);
    if (key == nullptr) {
      key = new Key();
      key->name = name;
      key->limiter.arrival_us = revive_rate(ConfigLevel::kKey, name);
      apply_config(key);
      if (turn_of(ConfigLevel::kKey)) key->limiter.bound_arrival(now_ms);
      keys_.insert(key, hash);
    }
    note_set(key, set.get(), now_ms);
    set->keys.push_back(key);
    if (!key->open) ++set->closed;
  }
  // A key that is named again may still owe tokens.
  for (Key* key : set->keys) refresh_key(key, now_ms);
  if (sorted.empty()) no_keys_ = set.get();
  if (set->keys.size() == 1) set->keys.front()->alone = set.get();
  return set.get();
}

Band& Lanes::make_band(uint8_t number) {
  std::unique_ptr<Band>& band = bands_[number];
  if (band == nullptr) {
    band = std::make_unique<Band>();
    used_bands_.insert(std::lower_bound(used_bands_.begin(), used_bands_.end(), number), number);
  }
  return *band;
}

BandClass* Lanes::join_class(uint8_t band, KeySet* keys) {
  std::unique_ptr<BandClass>& in_class = make_band(band).classes[keys];
  if (in_class == nullptr) {
    in_class = std::make_unique<BandClass>();
    in_class->keys = keys;
    in_class->band = band;
    keys->classes.push_back(in_class.get());
  }
  return in_class.get();
}

Lane* Lanes::join(uint8_t band, Bytes group_name, std::span<const Bytes> key_names, bool lifo,
                  int64_t now_ms) {
  Group* group = join_group(group_name);
  // While a change of the configuration is being applied, the arrival time from an idle rate may
  // not be bounded yet, and the new group gets no turn of its own.
  if (turn_of(ConfigLevel::kGroup)) group->limiter.bound_arrival(now_ms);
  KeySet* keys = join_keys(key_names, now_ms);
  const LaneId id{group, keys, band, lifo};
  const uint64_t hash = LaneTraits::hash(id.bytes());
  Lane* lane = lanes_.find(id.bytes(), hash);
  if (lane == nullptr) {
    lane = new Lane(id);
    lane->in_class = join_class(band, keys);
    ++lane->in_class->lanes;
    // It has lost its class to itself.
    if (Lane* own = lane->in_class->own; own != nullptr) refresh_lane(own, now_ms);
    ++keys->lanes;
    lane->at_group = static_cast<uint32_t>(group->lanes.size());
    group->lanes.push_back(lane);
    lanes_.insert(lane, hash);
  }
  ++lane->jobs;
  return lane;
}

void Lanes::leave(Lane* lane) {
  if (--lane->jobs == 0) drop_lane(lane);
}

void Lanes::drop_lane(Lane* lane) {
  CHECK(lane->tickets.empty() && lane->gated.empty() && lane->stack.empty());
  CHECK(lane->ready_in == nullptr && lane->in_class->own != lane);
  unlist_large(lane);
  set_shared(lane, false);
  Group* group = lane->group;
  KeySet* keys = lane->keys;
  group->lanes[lane->at_group] = group->lanes.back();
  group->lanes[lane->at_group]->at_group = lane->at_group;
  group->lanes.pop_back();
  if (--lane->in_class->lanes == 0) drop_class(lane->in_class);
  lanes_.erase_node(lane, LaneTraits::hash(lane->id.bytes()));
  delete lane;
  if (--keys->lanes == 0) drop_keys(keys);
  if (!group->lanes.empty()) return;
  if (group->held == 0) return drop_group(group);
  group->virtual_ms = 0;
}

Group* Lanes::hold(Bytes group_name) {
  Group* group = join_group(group_name);
  ++group->held;
  return group;
}

void Lanes::let_go(Group* group) {
  if (--group->held == 0 && group->lanes.empty()) drop_group(group);
}

void Lanes::drop_class(BandClass* in_class) {
  CHECK(in_class->ready.empty() && !in_class->open);
  std::erase(in_class->keys->classes, in_class);
  bands_[in_class->band]->classes.erase(in_class->keys);
}

void Lanes::drop_keys(KeySet* set) {
  std::vector<std::string> names;
  for (Key* key : set->keys) {
    names.push_back(key->name);
    std::erase(key->sets, set);
    if (key->alone == set) key->alone = nullptr;
    if (!key->sets.empty()) continue;
    forget_refill(key->limiter, {nullptr, key});
    if (key->limiter.rate.tokens != 0) {
      idle_rates_.keep(ConfigLevel::kKey, key->name, key->limiter.arrival_us);
    }
    if (is_limited(key->limiter)) --limited_;
    keys_.erase(key->name, hash_bytes(key->name));
    delete key;
  }
  if (set == no_keys_) no_keys_ = nullptr;
  key_sets_.erase(names);
}

void Lanes::drop_group(Group* group) {
  CHECK(group->pending == 0 && group->own.empty());
  forget_refill(group->limiter, {group, nullptr});
  if (group->limiter.rate.tokens != 0) {
    idle_rates_.keep(ConfigLevel::kGroup, group->name, group->limiter.arrival_us);
  }
  if (is_limited(group->limiter)) --limited_;
  groups_.erase(group->name, hash_bytes(group->name));
  delete group;
}

// --- Tickets ---

void Lanes::add_ticket(Job* job, bool due, int64_t now_ms) {
  Lane* lane = job->lane;
  if (lane->lifo) insert(lane->stack, job->arrival(), 0, job);
  if (due) {
    enter(lane, rank_key(job->rank), job->seq, job);
  } else if (lane->lifo) {
    insert(lane->gated, rank_key(job->rank), job->seq, job);
  }
  // A ticket that is not first in its FIFO lane does not affect the lane's place.
  if (lane->lifo || (due && lane->first() == job)) refresh_lane(lane, now_ms);
}

void Lanes::enter(Lane* lane, uint64_t rank_key, uint64_t seq, Job* job) {
  bands_[lane->band]->pending.insert(rank_key, seq, job);
  insert(lane->tickets, rank_key, seq, job);
  for (Key* key : lane->keys->keys) ++key->pending;
  if (++lane->group->pending == 1) put_in_backlog(lane->group);
}

void Lanes::add_ticket(Lane* lane, uint64_t rank_key, uint64_t seq, Job* job, int64_t now_ms) {
  enter(lane, rank_key, seq, job);
  if (lane->first() == job) refresh_lane(lane, now_ms);
}

void Lanes::remove_ticket(Job* job, bool due, int64_t now_ms) {
  Lane* lane = job->lane;
  const bool was_first = lane->lifo || (due && lane->first() == job);
  bool found = true;
  if (lane->lifo) found = erase(lane->stack, job->arrival(), 0, job);
  if (due) {
    found = found && bands_[lane->band]->pending.erase(rank_key(job->rank), job->seq, job) &&
            erase(lane->tickets, rank_key(job->rank), job->seq, job);
    for (Key* key : lane->keys->keys) --key->pending;
    if (--lane->group->pending == 0) take_from_backlog(lane->group);
  } else if (lane->lifo) {
    found = found && erase(lane->gated, rank_key(job->rank), job->seq, job);
  }
  CHECK(found);
  if (was_first) refresh_lane(lane, now_ms);
}

// --- Ready lanes, open classes ---

ReadyKey Lanes::ready_key(const Lane* lane, const Job* ticket) const {
  const uint64_t rank = rank_key(ticket->rank);
  if (!config_.values().fair) return {rank, ticket->seq, ticket->seq};
  const uint64_t share =
      ticket->is_front() ? 0 : order_preserving(std::max(0.0, lane->group->virtual_ms));
  return {share, rank, ticket->seq};
}

bool Lanes::is_short(const KeySet* set, uint32_t cost) {
  return std::any_of(set->keys.begin(), set->keys.end(),
                     [&](const Key* key) { return !key->limiter.has_slots(cost); });
}

// Lists a lane whose first job takes several slots at each of its keys: whether a key has room for
// such a job changes with each slot.
void Lanes::list_large(Lane* lane) {
  lane->large = true;
  for (Key* key : lane->keys->keys) key->large.push_back(lane);
}

void Lanes::unlist_large(Lane* lane) {
  if (!lane->large) return;
  lane->large = false;
  for (Key* key : lane->keys->keys) std::erase(key->large, lane);
}

void Lanes::refresh_lane(Lane* lane, int64_t now_ms) {
  unlist_large(lane);
  BandClass* ready_in = nullptr;
  const bool pending = lane->has_pending();
  const bool own = pending && can_be_own(lane);
  if (pending) {
    const uint32_t cost = lane->first()->cost();
    Limiter& limiter = lane->group->limiter;
    const bool has_room = limiter.allows(cost, now_ms);
    if (!has_room) await_refill(limiter, {lane->group, nullptr}, now_ms);
    if (own) {
      if (lane->keys->closed == 0) {
        ready_in = join_own_class(lane->group, lane->band);
        ready_in->has_room = has_room;
      }
    } else if (has_room) {
      ready_in = lane->in_class;
      if (cost > 1) {
        if (is_short(lane->keys, cost)) ready_in = nullptr;
        list_large(lane);
      }
    }
  }
  set_shared(lane, pending && !own);
  if (own) {
    lane->in_class->own = lane;
  } else if (lane->in_class->own == lane) {
    lane->in_class->own = nullptr;
  }
  set_ready(lane, ready_in);
}

ReadyKey Lanes::key_in(const BandClass* in_class, const Lane* lane) const {
  const Job* ticket = lane->first_ticket();
  // The ranks of the front are less than all others.
  if (in_class->group != nullptr) return {rank_key(ticket->rank), ticket->seq, ticket->seq};
  return ready_key(lane, ticket);
}

void Lanes::set_ready(Lane* lane, BandClass* in_class) {
  BandClass* const from = lane->ready_in;
  if (from != nullptr && from != in_class) {
    const bool found = erase(from->ready, lane->ready_key.major, lane->ready_key.minor, lane);
    CHECK(found);
    lane->ready_in = nullptr;
    refresh_class(from, nullptr);
    if (from->group != nullptr && from->ready.empty()) drop_own_class(from);
  }
  if (in_class == nullptr) return;
  const ReadyKey key = key_in(in_class, lane);
  if (from != in_class || key != lane->ready_key) {
    // Most queues have one class with one lane, whose place moves with each pop.
    const bool moved = from == in_class && in_class->ready.rekey_only(key.major, key.minor);
    if (from == in_class && !moved) {
      const bool found = erase(in_class->ready, lane->ready_key.major, lane->ready_key.minor, lane);
      CHECK(found);
    }
    lane->ready_key = key;
    lane->ready_in = in_class;
    if (!moved) insert(in_class->ready, key.major, key.minor, lane);
  } else if (in_class->group == nullptr) {
    return;
  }
  refresh_class(in_class, nullptr);
}

void Lanes::refresh_class(BandClass* in_class, const Key* flipped) {
  OpenClasses& all = bands_[in_class->band]->open;
  const bool is_own = in_class->group != nullptr;
  const bool ready = !in_class->ready.empty();
  const bool open = ready && (is_own ? in_class->has_room : in_class->keys->closed == 0);
  const ReadyKey place = ready ? this->place(in_class->ready.front().value) : ReadyKey{};
  const bool same_place = place == in_class->place;
  if (open == in_class->open && same_place && flipped == nullptr) return;
  const bool at_keys = !is_own && (!same_place || flipped != nullptr);
  if (at_keys) unplace_at_keys(in_class, flipped);
  const bool stays =
      open && in_class->open && (same_place || all.rekey_only(place.major, place.minor));
  if (in_class->open && !stays) {
    const bool found = all.erase(in_class->place.major, in_class->place.minor, in_class);
    CHECK(found);
  }
  in_class->place = place;
  if (open && !stays) all.insert(place.major, place.minor, in_class);
  in_class->open = open;
  if (at_keys) place_at_keys(in_class, flipped);
}

void Lanes::refresh_key(Key* key, int64_t now_ms) {
  const bool open = key->limiter.allows(1, now_ms);
  if (!open) await_refill(key->limiter, {nullptr, key}, now_ms);
  if (open != key->open) {
    key->open = open;
    for (KeySet* set : key->sets) {
      set->closed = open ? set->closed - 1 : set->closed + 1;
      // While two other keys are closed, the class is in no index, whatever this key does.
      if (set->closed > (open ? 1 : 2)) continue;
      for (BandClass* in_class : set->classes) {
        if (in_class->own != nullptr) {
          refresh_lane(in_class->own, now_ms);
        } else {
          refresh_class(in_class, key);
        }
      }
    }
  }
  const std::vector<Lane*> large = key->large;
  for (Lane* lane : large) refresh_lane(lane, now_ms);
}

// --- Admission ---

void Lanes::take_tokens(Job* job, int64_t now_ms) {
  job->lane->group->limiter.take_token(now_ms);
  for (Key* key : job->lane->keys->keys) key->limiter.take_token(now_ms);
}

void Lanes::admit(Job* job, int64_t now_ms) {
  const uint32_t cost = job->cost();
  Group* group = job->lane->group;
  group->limiter.used += cost;
  if (job->run() != nullptr) group->guessed_ms += job->run()->charged_ms;
  if (group->limiter.max_active != 0 || group->limiter.rate.tokens != 0) {
    refresh_group(group, now_ms);
  }
  for (Key* key : job->lane->keys->keys) {
    key->limiter.used += cost;
    refresh_key(key, now_ms);
  }
}

void Lanes::release(Job* job, int64_t now_ms) {
  const uint32_t cost = job->cost();
  Group* group = job->lane->group;
  CHECK(group->limiter.used >= cost);
  group->limiter.used -= cost;
  if (group->limiter.max_active != 0) refresh_group(group, now_ms);
  // Without a run the sum must be 0, without a rounding error.
  if (job->run() != nullptr) group->guessed_ms -= job->run()->charged_ms;
  if (group->limiter.used == 0) group->guessed_ms = 0;
  for (Key* key : job->lane->keys->keys) {
    CHECK(key->limiter.used >= cost);
    key->limiter.used -= cost;
    refresh_key(key, now_ms);
  }
}

// --- Fair shares ---

void Lanes::put_in_backlog(Group* group) {
  if (!config_.values().fair) return;
  backlog_.insert(order_preserving(group->virtual_ms), address(group), group);
  group->backlog_weight = static_cast<uint64_t>(std::llround(group->config.weight * kWeightUnits));
  backlog_weight_ += group->backlog_weight;
}

void Lanes::take_from_backlog(Group* group) {
  if (group->backlog_weight == 0) return;
  const bool found = backlog_.erase(order_preserving(group->virtual_ms), address(group), group);
  CHECK(found);
  backlog_weight_ -= std::exchange(group->backlog_weight, 0);
}

void Lanes::set_virtual_ms(Group* group, double virtual_ms, int64_t now_ms) {
  if (group->pending != 0) take_from_backlog(group);
  group->virtual_ms = virtual_ms;
  if (group->pending != 0) put_in_backlog(group);
  if (config_.values().fair) refresh_group(group, now_ms);
}

void Lanes::charge_start(Group* group, double guessed_ms, int64_t now_ms) {
  raise_virtual_ms(group->received_ms());
  set_virtual_ms(group, group->virtual_ms + guessed_ms / group->config.weight, now_ms);
}

void Lanes::charge_end(Group* group, double guessed_ms, double real_ms, int64_t now_ms) {
  const double weight = group->config.weight;
  const double share = group->virtual_ms + (real_ms - guessed_ms) / weight;
  set_virtual_ms(group, std::max(0.0, share), now_ms);
  const bool is_listed = config_.values().fair && group->pending != 0;
  const double asking =
      static_cast<double>(backlog_weight_) / kWeightUnits + (is_listed ? 0 : weight);
  raise_virtual_ms(std::min(virtual_ms_ + real_ms / asking, group->received_ms()));
}

void Lanes::end_replay() {
  forget_absent_shares();
  // The previous process may have ended before all groups and keys had their turn.
  if (config_.has_rates()) turns_ = {Turn{}, Turn{}};
  // Journals of earlier versions do not hold it.
  if (virtual_ms_ == 0 && !backlog_.empty()) {
    raise_virtual_ms(backlog_.front().value->received_ms());
  }
}

// --- The next job ---

bool Lanes::allows(const Job* job, int64_t now_ms) const {
  const uint32_t cost = job->cost();
  if (!job->lane->group->limiter.allows(cost, now_ms)) return false;
  const std::vector<Key*>& keys = job->lane->keys->keys;
  return std::all_of(keys.begin(), keys.end(),
                     [&](const Key* key) { return key->limiter.allows(cost, now_ms); });
}

// --- Rates ---

void Lanes::forget_refill(Limiter& limiter, const Refill& refill) {
  if (limiter.rate_due_ms == 0) return;
  refills_.erase(static_cast<uint64_t>(limiter.rate_due_ms), address(&limiter), refill);
  limiter.rate_due_ms = 0;
}

void Lanes::await_refill(Limiter& limiter, const Refill& refill, int64_t now_ms) {
  const int64_t ready_ms = limiter.rate_ready_ms(now_ms);
  // What is due stays: other lanes wait for run_rates() to refresh them.
  if (ready_ms == 0 || ready_ms == limiter.rate_due_ms) return;
  forget_refill(limiter, refill);
  limiter.rate_due_ms = ready_ms;
  refills_.insert(static_cast<uint64_t>(ready_ms), address(&limiter), refill);
}

int64_t Lanes::next_rate_ms() const {
  return refills_.empty() ? INT64_MAX : static_cast<int64_t>(refills_.front().major);
}

bool Lanes::run_rates(int64_t now_ms) {
  idle_rates_.forget_passed(now_ms);
  const bool any = next_rate_ms() <= now_ms;
  while (next_rate_ms() <= now_ms) {
    const Refill refill = refills_.pop_front().value;
    if (refill.group != nullptr) {
      refill.group->limiter.rate_due_ms = 0;
      refresh_group(refill.group, now_ms);
    } else {
      refill.key->limiter.rate_due_ms = 0;
      refresh_key(refill.key, now_ms);
    }
  }
  return any;
}

size_t Lanes::memory_bytes() const {
  size_t bytes = groups_.memory_bytes() + keys_.memory_bytes() + backlog_.memory_bytes() +
                 refills_.memory_bytes() + idle_rates_.memory_bytes();
  bytes += groups_.size() * sizeof(Group) + keys_.size() * sizeof(Key);
  bytes += key_sets_.size() * (sizeof(KeySet) + 64) + lanes_.memory_bytes() +
           lanes_.size() * sizeof(Lane) + index_bytes_;
  for (const uint8_t number : used_bands_) {
    const Band& band = *bands_[number];
    bytes += sizeof(Band) + band.pending.memory_bytes() + band.open.memory_bytes() +
             band.later.memory_bytes() + band.classes.size() * sizeof(BandClass);
  }
  return bytes;
}

size_t Lanes::walk_index_bytes() const {
  size_t bytes = 0;
  lanes_.for_each([&](const Lane* lane) {
    bytes += lane->tickets.memory_bytes() + lane->gated.memory_bytes() + lane->stack.memory_bytes();
  });
  for (const uint8_t number : used_bands_) {
    for (const auto& [keys, in_class] : bands_[number]->classes) {
      bytes += in_class->ready.memory_bytes();
    }
  }
  groups_.for_each([&](const Group* group) {
    for (const BandClass* own : group->own) bytes += sizeof(BandClass) + own->ready.memory_bytes();
  });
  keys_.for_each([&](const Key* key) {
    for (const auto& [band, open] : key->open_classes) bytes += open.memory_bytes();
  });
  return bytes;
}

void Lanes::check(int64_t now_ms) const {
  lanes_.for_each([&](const Lane* lane) {
    lane->tickets.check();
    const bool own = lane->in_class->own == lane;
    bool ready = lane->has_pending();
    CHECK((lane->at_group < lane->group->shared) == (ready && !own));
    if (own) {
      CHECK(ready && can_be_own(lane));
      ready = lane->keys->closed == 0;
    } else if (ready) {
      const uint32_t cost = lane->first()->cost();
      ready =
          lane->group->limiter.allows(cost, now_ms) && (cost == 1 || !is_short(lane->keys, cost));
    }
    CHECK((lane->ready_in != nullptr) == ready);
    if (ready) {
      CHECK(lane->ready_in == (own ? find_own_class(lane->group, lane->band) : lane->in_class));
      // Until its turn, a group may not reflect a change of `fair`.
      if (own || !is_reconfiguring()) CHECK(lane->ready_key == key_in(lane->ready_in, lane));
    }
    if (lane->lifo) CHECK(lane->stack.size() == lane->tickets.size() + lane->gated.size());
  });
  std::unordered_map<const Key*, uint64_t> pending;
  lanes_.for_each([&](const Lane* lane) {
    for (const Key* key : lane->keys->keys) pending[key] += lane->tickets.size();
  });
  uint64_t limited = 0;
  groups_.for_each([&](const Group* group) {
    limited += is_limited(group->limiter) ? 1 : 0;
    check_own_classes(group, now_ms);
  });
  keys_.for_each([&](const Key* key) {
    CHECK(key->open == key->limiter.allows(1, now_ms));
    CHECK(key->pending == pending[key]);
    limited += is_limited(key->limiter) ? 1 : 0;
  });
  CHECK(limited == limited_ && walk_index_bytes() == index_bytes_);
  for (const uint8_t number : used_bands_) {
    const Band& band = *bands_[number];
    band.pending.check();
    for (const auto& [keys, in_class] : band.classes) {
      const bool open = keys->closed == 0 && !in_class->ready.empty();
      CHECK(in_class->open == open);
      if (open) CHECK(in_class->place == in_class->ready.front().value->ready_key);
    }
  }
  keys_.for_each(check_classes);
}

}  // namespace sluice
