// Groups, keys and their limits: slots, rates, pauses.
//
// A Limiter counts the slots in use under one limit and decides whether another job fits. A queue
// has one, and so have each group and each key. Groups and keys exist as long as a waiting or
// active job names them. Plain data of one queue, under the shard's lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/hash.h"
#include "engine/queue/queue_config.h"
#include "engine/structures/ordered_index.h"

namespace sluice {

struct BandClass;
struct Lane;
struct KeySet;

struct Limiter {
  uint64_t used = 0;  // slots of active jobs
  uint64_t max_active = 0;
  Rate rate;
  // GCRA: the theoretical arrival time of the next token, in microseconds of queue time; journaled.
  int64_t arrival_us = 0;
  // When the first and the last token of this rate were taken, since a restart; none: the first is
  // after the last.
  int64_t first_taken_ms = 0;
  int64_t taken_ms = -1;
  bool paused = false;  // for admissions (`paused out`)
  // Its place in the index of rates that refill (Lanes); 0: not in the index.
  int64_t rate_due_ms = 0;

  bool has_slots(uint64_t cost) const { return max_active == 0 || used + cost <= max_active; }

  // The queue time at which a token is available; 0: now, or no rate.
  int64_t rate_ready_ms(int64_t now_ms) const {
    if (rate.tokens == 0) return 0;
    const int64_t ready_us = arrival_us - tolerance_us();
    return ready_us <= now_ms * 1000 ? 0 : (ready_us + 999) / 1000;
  }
  void set_rate(const Rate& changed) {
    if (rate == changed) return;
    rate = changed;
    first_taken_ms = 0;
    taken_ms = -1;
  }
  void take_token(int64_t now_ms) {
    if (rate.tokens == 0) return;
    arrival_us = std::max(arrival_us, now_ms * 1000) + interval_us();
    if (taken_ms < first_taken_ms) first_taken_ms = now_ms;
    taken_ms = now_ms;
  }
  // Gives back the token of a run that began at this time, except what may have refilled of it
  // before the last one was taken. So the rate never admits more than if that token had not been
  // taken. A run that began before the first token of this rate, or after the last, took none.
  void give_token_back(int64_t began_ms) {
    if (rate.tokens == 0 || began_ms < first_taken_ms || began_ms > taken_ms) return;
    arrival_us -= std::max<int64_t>(0, interval_us() - (taken_ms - began_ms) * 1000);
  }
  // Limits the debt to that of a whole burst taken now, or to nothing without a rate. For a rate
  // that has changed; an unchanged one never owes more. Returns whether the debt has become
  // smaller.
  bool bound_arrival(int64_t now_ms) {
    const int64_t latest_us = rate.tokens == 0 ? 0 : now_ms * 1000 + interval_us() + tolerance_us();
    if (arrival_us <= latest_us) return false;
    arrival_us = latest_us;
    return true;
  }
  bool allows(uint64_t cost, int64_t now_ms) const {
    return !paused && has_slots(cost) && rate_ready_ms(now_ms) == 0;
  }

 private:
  int64_t interval_us() const {
    return std::max<int64_t>(1, rate.interval_ms * 1000 / static_cast<int64_t>(rate.tokens));
  }
  // The burst may be taken at one moment.
  int64_t tolerance_us() const { return interval_us() * (static_cast<int64_t>(rate.burst) - 1); }
};

// A group or key: a limiter with a name, and what depends on it.
struct Group {
  std::string name;
  Limiter limiter;
  GroupConfig config;
  uint64_t waiting = 0;  // blocked, delayed, pending and successors
  uint64_t active = 0;
  uint64_t pending = 0;
  uint64_t delayed = 0;
  uint64_t blocked = 0;
  // Start-time fair queueing: slot time / weight received, in milliseconds. Journaled with `fair
  // on`.
  double virtual_ms = 0;
  // The part of it, before the weight, that is an estimate for runs that have not ended.
  double guessed_ms = 0;
  uint64_t backlog_weight = 0;  // in millionths, while it is in the backlog; else 0
  std::vector<Lane*> lanes;
  uint32_t shared = 0;          // the first ones of them have pending jobs and are in no own class
  std::vector<BandClass*> own;  // its own classes (lanes.h): one for each band with a ready lane
  uint64_t held = 0;            // Lanes::hold

  double received_ms() const { return virtual_ms - guessed_ms / config.weight; }

  bool idle() const { return waiting == 0 && active == 0; }
};

// For classes whose places differ only in the number of their tickets.
struct ClassOrder {
  bool operator()(const BandClass* a, const BandClass* b) const;
};
using OpenClasses = OrderedIndex<BandClass*, ClassOrder>;

struct Key {
  std::string name;
  Limiter limiter;
  std::vector<KeySet*> sets;  // that contain it
  // For MATCH, by band: their classes that have a ready lane and room at each key except perhaps
  // this one, so that nothing moves here when this key fills. Maintained once examining all sets
  // costs more.
  std::map<uint8_t, OpenClasses> open_classes;
  bool is_indexed = false;  // open_classes is maintained
  KeySet* alone = nullptr;  // the one of them that contains only this key
  // Lanes whose first job costs several slots: checked whenever the number of slots in use changes.
  std::vector<Lane*> large;
  uint64_t pending = 0;  // jobs
  bool open = true;      // has room for a job of one slot; KeySet::closed counts the others

  bool idle() const { return sets.empty() && limiter.used == 0; }
};

// A set of keys that jobs name together, ascending by name. Jobs without keys have the empty set.
struct KeySet {
  std::vector<Key*> keys;
  uint32_t closed = 0;  // keys without room; unless it is 0, none of its lanes is in a band's index
  std::vector<BandClass*> classes;
  uint64_t lanes = 0;
  uint32_t indexed = 0;  // keys with an index

  // Whether all keys except this one have room.
  bool is_open_beside(const Key* key) const { return closed == (key->open ? 0U : 1U); }
  bool contains(Bytes name) const {
    return std::any_of(keys.begin(), keys.end(), [&](const Key* key) { return key->name == name; });
  }
};

struct GroupTraits {
  static constexpr size_t kMaxOrdered = 128;
  static Bytes key(const Group* group) { return group->name; }
  static uint64_t hash(Bytes name) { return hash_bytes(name); }
};
struct KeyTraits {
  static constexpr size_t kMaxOrdered = 128;
  static Bytes key(const Key* key) { return key->name; }
  static uint64_t hash(Bytes name) { return hash_bytes(name); }
};

}  // namespace sluice
