// Lanes: who goes next.
//
// Pending jobs with the same band, group and set of keys stand in one *lane*, in the order of their
// ranks. The lanes of one band and one set of keys form a *class*. A lane whose group has room for
// its first job is *ready*: it stands in its class's index, by the place of its first job in the
// dispatch order. A class all of whose keys have room, and that has a ready lane, is *open*: it
// stands in its band's index by its first lane. So the next job of a band is the first job of the
// first lane of its first open class; a full group takes its own lanes out, a full key its sets of
// keys, and neither touches a job.
//
// Costs: a job comes, goes or is admitted in O((1 + s) log n), where s is the lanes of its group
// (which move only when the group's room or its fair share changes), times its keys that stand in
// several sets; a key that fills or empties: the number of distinct sets of keys that contain it.
//
// Invariants (check() verifies them):
// 1. A lane is in its class's index exactly if it has a pending job, its group allows the first
//    one, and no key of its set lacks the slots for this job alone.
// 2. A class is in its band's index exactly if it has a ready lane and no key of its set is closed.
// 3. A lane stands there under ready_key(lane), a class under that of its first lane.
// 4. A class with a ready lane is in the index of a key of its set, where that has one, exactly if
//    no other key of the set is closed.
// What a rate allows changes with time alone: run_rates() catches up, so call it before next().
//
// Plain data of one queue, under the shard's lock. Lanes, classes, groups, keys and sets are made
// when a job first names them and destroyed with the last one.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "engine/queue/idle_rates.h"
#include "engine/queue/job.h"
#include "engine/queue/limiters.h"
#include "engine/structures/ordered_index.h"
#include "engine/structures/split_map.h"

namespace sluice {

// A lane's place in the dispatch order of its band: (rank, seq) of its first ticket; with `fair on`
// the group's share goes before the rank (0 for the front).
struct ReadyKey {
  uint64_t major = 0;
  uint64_t minor = 0;
  uint64_t seq = 0;
  auto operator<=>(const ReadyKey&) const = default;
};

// What a lane is found by. Its bytes are hashed as they lie, so it has no padding.
struct LaneId {
  Group* group = nullptr;
  KeySet* keys = nullptr;
  uint32_t band = 0;
  uint32_t lifo = 0;
  Bytes bytes() const { return {reinterpret_cast<const char*>(this), sizeof(*this)}; }
};
static_assert(std::has_unique_object_representations_v<LaneId>);

struct Lane {
  explicit Lane(const LaneId& lane_id)
      : id(lane_id),
        group(id.group),
        keys(id.keys),
        band(static_cast<uint8_t>(id.band)),
        lifo(id.lifo != 0) {}

  const LaneId id;
  Group* const group;
  KeySet* const keys;
  BandClass* in_class = nullptr;
  const uint8_t band;
  const bool lifo;
  uint64_t jobs = 0;      // in any state, retained ones too; the lane goes with the last one
  uint32_t at_group = 0;  // its place in group->lanes
  // Tickets that are due, by (rank, seq). In a FIFO lane a ticket is its own job's.
  OrderedIndex<Job*> tickets;
  // LIFO only: tickets that are not due, and the stack: all jobs of the pairing by arrival.
  OrderedIndex<Job*> gated;
  OrderedIndex<Job*> stack;

  bool ready = false;
  ReadyKey ready_key;  // where it stands while it is ready
  bool large = false;  // listed at its keys: the first job costs several slots

  bool has_pending() const { return !tickets.empty(); }
  // The job that a pop takes from this lane. REQUIRES: has_pending().
  Job* first() const { return lifo ? stack.back().value : tickets.front().value; }
  // Whose ticket stands first: rank and seq of the lane. REQUIRES: has_pending().
  Job* first_ticket() const { return tickets.front().value; }
};

struct LaneTraits {
  static constexpr size_t kMaxOrdered = 128;
  static Bytes key(const Lane* lane) { return lane->id.bytes(); }
  static uint64_t hash(Bytes id) { return hash_bytes(id); }
};

struct LaneOrder {
  bool operator()(const Lane* a, const Lane* b) const {
    return a->ready_key.seq < b->ready_key.seq;
  }
};

struct BandClass {
  KeySet* keys = nullptr;
  uint8_t band = 0;
  OrderedIndex<Lane*, LaneOrder> ready;
  uint64_t lanes = 0;
  bool open = false;
  // That of its first ready lane. (Equal where there is none: no lane has it.)
  ReadyKey place;
};

inline bool ClassOrder::operator()(const BandClass* a, const BandClass* b) const {
  return a->place.seq < b->place.seq;
}

struct Band {
  // Every pending ticket of the band by (rank, seq): position, and BY RANK.
  OrderedIndex<Job*> pending;
  OpenClasses open;
  std::map<const KeySet*, std::unique_ptr<BandClass>> classes;
  // Blocked, delayed and active jobs that may stand behind every time so far, by (rank, seq): only
  // they and pending ones can be the last of the band. Kept by Queue::place.
  OrderedIndex<Job*> later;
  // The greatest rank of its jobs that may run, or run; of those up to the present not exactly.
  int64_t last_rank() const {
    const int64_t rank = pending.empty() ? kFrontRanks : pending.back().value->rank;
    return later.empty() ? rank : std::max(rank, later.back().value->rank);
  }
  // For statistics, kept by Queue::place.
  uint64_t waiting = 0;
  uint64_t active = 0;
  uint64_t delayed = 0;
  uint64_t blocked = 0;
};

// A signed rank as an integer of the same order, for the indexes.
inline uint64_t rank_key(int64_t rank) { return static_cast<uint64_t>(rank) ^ (uint64_t{1} << 63); }

class Lanes {
 public:
  explicit Lanes(const QueueConfig& config) : config_(config) {}
  ~Lanes();
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  // --- Groups, keys, lanes ---
  // The lane for these attributes, made where there is none; it, its group and its keys get one
  // more job.
  Lane* join(uint8_t band, Bytes group, std::span<const Bytes> keys, bool lifo, int64_t now_ms);
  // The job that was counted by join() is gone (forgotten, ended, or in another lane): what nobody
  // names any more is destroyed.
  void leave(Lane* lane);
  // A group that has no job yet: that of a successor whose job is of another one. It is there, but
  // has no share and no tokens of its own before its first job.
  Group* hold(Bytes group_name);
  void let_go(Group* group);
  Group* find_group(Bytes name) const { return groups_.find(name); }
  Key* find_key(Bytes name) const { return keys_.find(name); }
  const SplitMap<Group, GroupTraits>& groups() const { return groups_; }
  const SplitMap<Key, KeyTraits>& keys() const { return keys_; }
  size_t lane_count() const { return lanes_.size(); }
  template <class Visit>
  void for_each_lane(Visit visit) const {
    lanes_.for_each(visit);
  }
  // Some group or key that jobs name has a cap, or is paused.
  bool has_limits() const { return limited_ != 0; }

  // --- Tickets --- The job's state, rank, seq and lane are set and do not change while it is here.
  void add_ticket(Job* job, bool due, int64_t now_ms);
  void remove_ticket(Job* job, bool due, int64_t now_ms);
  // As add_ticket for a due one of a FIFO lane, without a look at the job: replay has many.
  void add_ticket(Lane* lane, uint64_t rank_key, uint64_t seq, Job* job, int64_t now_ms);

  // --- Admission ---
  // Slots of the group and the keys of a job that is (or no longer is) active. Queue::place does
  // it.
  void admit(Job* job, int64_t now_ms);
  void release(Job* job, int64_t now_ms);
  // Rate tokens of its group and keys, just before admit().
  static void take_tokens(Job* job, int64_t now_ms);
  // The group's share has changed.
  void set_virtual_ms(Group* group, double virtual_ms, int64_t now_ms);

  // --- Fair shares --- The queue's virtual time: the share at which a group begins that asks
  // again. It is the greatest one that a group had received when a job of it was admitted, and
  // rises with each run, by the run divided among all who asked: also where newcomers are admitted
  // alone, it passes the share of a group that waits. Never goes back; journaled.
  double virtual_ms() const { return virtual_ms_; }
  // Replay: it is at least this.
  void raise_virtual_ms(double virtual_ms) { virtual_ms_ = std::max(virtual_ms_, virtual_ms); }
  // The group has a pending job again. Before add_ticket().
  void begin_backlog(Group* group, int64_t now_ms) {
    set_virtual_ms(group, std::max(group->virtual_ms, virtual_ms_), now_ms);
  }
  // Slot time of a job that is admitted, by a guess; and of a run that has ended. Before admit(),
  // behind release().
  void charge_start(Group* group, double guessed_ms, int64_t now_ms);
  void charge_end(Group* group, double guessed_ms, double real_ms, int64_t now_ms);
  // What limits it has changed, or a rate has refilled.
  void refresh_group(Group* group, int64_t now_ms);
  void refresh_key(Key* key, int64_t now_ms);

  // --- Configuration --- What a rate of a group or key owes now, for the journal.
  struct BoundRate {
    ConfigLevel level{};
    std::string name;
    double virtual_ms = 0;
    int64_t arrival_us = 0;
  };
  // The configuration has changed. What the change names takes it over at once; of a whole level
  // each group or key in its turn (reconfigure_some), and has its old values until then. Rates that
  // have changed owe no more than Limiter::bound_arrival() allows, also where no job names the
  // group or key: those that owe less now are added to `bound`. Null, for replay: its records say
  // what each owes.
  void reconfigure(const ConfigChange& change, int64_t now_ms, std::vector<BoundRate>* bound);
  // Goes on with those whose turn has not come, for about so many steps of at most some
  // microseconds.
  void reconfigure_some(size_t steps, int64_t now_ms, std::vector<BoundRate>* bound);
  bool is_reconfiguring() const { return turns_[0].has_value() || turns_[1].has_value(); }

  // --- Who is next ---
  Band* band(uint8_t number) const { return bands_[number].get(); }
  // Used bands, ascending.
  const std::vector<uint8_t>& used_bands() const { return used_bands_; }
  // The lane that is next in a band; `match`: only of sets with one of these keys (empty: any).
  // Null: none is open.
  Lane* next(uint8_t band, std::span<const std::string> match) const;
  // True: every limit of group and keys allows this very job now (it need not be first).
  bool allows(const Job* job, int64_t now_ms) const;

  // The time of a rate of a group or key that no job names (replay).
  void keep_idle_rate(ConfigLevel level, Bytes name, int64_t arrival_us) {
    idle_rates_.keep(level, name, arrival_us);
  }
  const IdleRates& idle_rates() const { return idle_rates_; }
  // Replay only: the share of a group whose jobs come later, or have been lost on the way of a
  // fuzzy checkpoint. A group that nobody names has none in a queue that serves.
  void keep_absent_share(Bytes name, double virtual_ms) {
    absent_shares_[std::string(name)] = virtual_ms;
  }
  void end_replay();

  // --- Rates --- Queue time at which the next group or key gets a token again; kNeverMs: none.
  int64_t next_rate_ms() const;
  void run_rates(int64_t now_ms);

  // The place in the dispatch order that this ticket of a lane has, or would have as its first.
  ReadyKey ready_key(const Lane* lane, const Job* ticket) const;

  // --- Looking ahead (dispatch_order.h) --- What an admission of the first job of a ready lane
  // does here, and its undoing: the last one first, with nothing else in between. `charged_ms`: to
  // the share of the group, before its weight.
  struct Taken {
    Lane* lane = nullptr;
    Job* job = nullptr;
    Job* ticket = nullptr;
    double virtual_ms = 0;          // of the group, before
    std::vector<Limiter> limiters;  // likewise: the group's, then those of the keys
  };
  Taken take_first(Lane* lane, double charged_ms, int64_t now_ms);
  void put_back(const Taken& taken, int64_t now_ms);

  size_t memory_bytes() const;  // kept, not walked
  // Verifies the invariants; for tests.
  void check(int64_t now_ms) const;

 private:
  // An entry of the index of rates that refill.
  struct Refill {
    Group* group;
    Key* key;
    bool operator==(const Refill&) const = default;
  };

  // Whose turn is next to take over a changed configuration.
  struct Turn {
    uint64_t cursor = 0;   // of the scan of groups or keys
    bool scanned = false;  // all of them
    std::string idle;      // the last name of idle_rates_ whose turn has been
  };

  // Insertion into and removal from an index of a lane, class or key: there are many, so what they
  // take is counted (index_bytes_).
  template <class Index>
  void insert(Index& index, uint64_t major, uint64_t minor, decltype(index.front().value) value) {
    index_bytes_ -= index.memory_bytes();
    index.insert(major, minor, value);
    index_bytes_ += index.memory_bytes();
  }
  template <class Index>
  bool erase(Index& index, uint64_t major, uint64_t minor, decltype(index.front().value) value) {
    index_bytes_ -= index.memory_bytes();
    const bool found = index.erase(major, minor, value);
    index_bytes_ += index.memory_bytes();
    return found;
  }
  size_t walk_index_bytes() const;
  Band& make_band(uint8_t number);
  Group* join_group(Bytes name);
  KeySet* join_keys(std::span<const Bytes> names, int64_t now_ms);
  BandClass* join_class(uint8_t band, KeySet* keys);
  // A set has come to a key; if it stands in many now, it gets an index of their classes.
  void note_set(Key* key, KeySet* set);
  // A due ticket comes into its band and its lane.
  void enter(Lane* lane, uint64_t rank_key, uint64_t seq, Job* job);
  void drop_lane(Lane* lane);
  void drop_class(BandClass* in_class);
  void drop_keys(KeySet* set);
  void drop_group(Group* group);
  void apply_config(Group* group);
  void apply_config(Key* key);
  void reconfigure(Group* group, int64_t now_ms, std::vector<BoundRate>* bound);
  void reconfigure(Key* key, int64_t now_ms, std::vector<BoundRate>* bound);
  void bound_idle_rate(ConfigLevel level, Bytes name, int64_t now_ms,
                       std::vector<BoundRate>& bound);
  std::optional<Turn>& turn_of(ConfigLevel level) { return turns_[static_cast<size_t>(level) - 1]; }
  void set_limits(Limiter& limiter, uint64_t max_active, const Rate& rate, bool paused);
  static bool is_limited(const Limiter& limiter) {
    return limiter.max_active != 0 || limiter.paused;
  }
  void refresh_lane(Lane* lane, int64_t now_ms);
  // `flipped`: the key that has just been closed or opened; null: none has.
  void refresh_class(BandClass* in_class, const Key* flipped);
  // A class that leaves its place or its keys' indexes, and comes into them.
  void place_at_keys(BandClass* in_class, const Key* flipped);
  void unplace_at_keys(BandClass* in_class, const Key* flipped);
  static void check_classes(const Key* key);
  void set_ready(Lane* lane, bool ready);
  // Some key of the set has not as many slots.
  static bool is_short(const KeySet* set, uint32_t cost);
  static void list_large(Lane* lane);
  static void unlist_large(Lane* lane);
  // Puts a limiter into the index of rates by when it has a token again; takes it out.
  void await_refill(Limiter& limiter, const Refill& refill, int64_t now_ms);
  void forget_refill(Limiter& limiter, const Refill& refill);
  void restore(Limiter& limiter, const Limiter& before, const Refill& refill);
  void put_in_backlog(Group* group);
  void take_from_backlog(Group* group);

  const QueueConfig& config_;
  SplitMap<Group, GroupTraits> groups_;
  SplitMap<Key, KeyTraits> keys_;
  std::map<std::vector<std::string>, std::unique_ptr<KeySet>> key_sets_;
  KeySet* no_keys_ = nullptr;  // the set without keys, once somebody uses it
  SplitMap<Lane, LaneTraits> lanes_;
  std::array<std::unique_ptr<Band>, kBands> bands_;
  std::vector<uint8_t> used_bands_;
  // Groups with pending jobs by their share; kept only where `fair on`.
  OrderedIndex<Group*> backlog_;  // those with a Group::backlog_weight
  uint64_t backlog_weight_ = 0;   // of all of them
  uint64_t limited_ = 0;          // groups and keys (is_limited)
  double virtual_ms_ = 0;
  size_t index_bytes_ = 0;
  OrderedIndex<Refill> refills_;
  IdleRates idle_rates_;
  std::array<std::optional<Turn>, 2> turns_;  // of groups, keys; nothing: all have had theirs
  std::unordered_map<std::string, double> absent_shares_;
};

}  // namespace sluice
