// Lanes: which job is next.
//
// Pending jobs with the same band, group and set of keys form a *lane*, ordered by their ranks. The
// lanes of one band and one set of keys form a *class*. A lane whose group has room for its first
// job is *ready*: it is in its class's index, by the place of its first job in the dispatch order.
// A class that has a ready lane and all of whose keys have room is *open*: it is in its band's
// index, by its first lane. So the next job of a band is the first job of the first lane of its
// first open class. A full group removes its lanes from the indexes, a full key removes its sets of
// keys, and neither touches a job.
//
// Where jobs have keys of their own, a group has as many classes as jobs, each with one lane. Such
// lanes are in the *own class* of their group and band instead, so that they move together when the
// group's room or share changes: an own class is open if it has a ready lane and its group has
// room.
//
// Costs: adding, removing or admitting a job takes O((1 + s) log n), where s is the number of lanes
// of its group that are in no own class (which move only when the group's room or its fair share
// changes), times its keys that are in several sets. A key that fills or empties costs the number
// of distinct sets that contain it.
//
// Invariants (check() verifies them):
// 1. A lane is in its class's index exactly if it has a pending job, its group allows the first
//    one, and no key of its set lacks the slots for this job alone. It is in an own class's index
//    exactly if it is an own lane with a pending job, and no key of its set is closed.
// 2. A class is in its band's index exactly if it has a ready lane and no key of its set is closed,
//    an own class if it has a ready lane and its group has room.
// 3. The key of a lane there is ready_key(lane), in an own class (rank, seq), because the share is
//    the same for all; that of a class is place() of its first lane.
// 4. A class with a ready lane is in the index of a key of its set, where that has one, exactly if
//    no other key of the set is closed.
// Rates allow more as time passes: run_rates() applies that, so call it before next().
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

// A lane's place in the dispatch order of its band: (rank, seq) of its first ticket. With `fair on`
// the group's share comes before the rank (0 for the front).
struct ReadyKey {
  uint64_t major = 0;
  uint64_t minor = 0;
  uint64_t seq = 0;
  auto operator<=>(const ReadyKey&) const = default;
};

// The key of a lane. Its bytes are hashed as they are, so it has no padding.
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
  uint64_t jobs = 0;      // in any state, also retained ones; the last one destroys the lane
  uint32_t at_group = 0;  // its index in group->lanes
  // Due tickets, by (rank, seq). In a FIFO lane a ticket is its own job's.
  OrderedIndex<Job*> tickets;
  // LIFO only: tickets that are not due, and the stack: all jobs of the pairing by arrival.
  OrderedIndex<Job*> gated;
  OrderedIndex<Job*> stack;

  BandClass* ready_in = nullptr;  // the class in whose index it is; null: it is not ready
  ReadyKey ready_key;             // its key there
  bool large = false;             // listed at its keys, because the first job costs several slots

  bool has_pending() const { return !tickets.empty(); }
  // The job that the next pop takes from this lane. REQUIRES: has_pending().
  Job* first() const { return lifo ? stack.back().value : tickets.front().value; }
  // The first ticket, whose rank and seq are those of the lane. REQUIRES: has_pending().
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
  KeySet* keys = nullptr;  // null: an own class
  Group* group = nullptr;  // of an own class
  uint8_t band = 0;
  OrderedIndex<Lane*, LaneOrder> ready;
  uint64_t lanes = 0;
  Lane* own = nullptr;    // its only lane, if that belongs to the own class of its group
  bool has_room = false;  // of an own class: the group allows a job of one slot
  bool open = false;
  // The place of its first ready lane. Without one, a default value that no lane has.
  ReadyKey place;
};

inline bool ClassOrder::operator()(const BandClass* a, const BandClass* b) const {
  return a->place.seq < b->place.seq;
}

struct Band {
  // Every pending ticket of the band by (rank, seq), for positions and BY RANK.
  OrderedIndex<Job*> pending;
  OpenClasses open;
  std::map<const KeySet*, std::unique_ptr<BandClass>> classes;
  // Blocked, delayed and active jobs whose rank may be later than the queue time, by (rank, seq):
  // only they and pending ones can be the last of the band. Maintained by Queue::place.
  OrderedIndex<Job*> later;
  // The greatest rank of its jobs that are waiting or active. Exact only for ranks later than the
  // queue time.
  int64_t last_rank() const {
    const int64_t rank = pending.empty() ? kFrontRanks : pending.back().value->rank;
    return later.empty() ? rank : std::max(rank, later.back().value->rank);
  }
  // For statistics, maintained by Queue::place.
  uint64_t waiting = 0;
  uint64_t active = 0;
  uint64_t delayed = 0;
  uint64_t blocked = 0;
};

// A signed rank as an unsigned integer of the same order, for the indexes.
inline uint64_t rank_key(int64_t rank) { return static_cast<uint64_t>(rank) ^ (uint64_t{1} << 63); }

class Lanes {
 public:
  explicit Lanes(const QueueConfig& config) : config_(config) {}
  ~Lanes();
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  // --- Groups, keys, lanes ---
  // The lane for these attributes, made if it does not exist. Its job count, and so those of its
  // group and keys, grows by one.
  Lane* join(uint8_t band, Bytes group, std::span<const Bytes> keys, bool lifo, int64_t now_ms);
  // Ends one join(): the job was forgotten, has ended, or has moved to another lane. Lanes, groups
  // and keys without jobs are destroyed.
  void leave(Lane* lane);
  // Makes or keeps a group without a job: that of a successor whose job is in another group. Before
  // its first job it has no share and no tokens of its own.
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
  // Whether some group or key in use has a cap or is paused.
  bool has_limits() const { return limited_ != 0; }

  // --- Tickets ---
  // The job's state, rank, seq and lane are set and do not change while its ticket is here.
  void add_ticket(Job* job, bool due, int64_t now_ms);
  void remove_ticket(Job* job, bool due, int64_t now_ms);
  // Like add_ticket for a due ticket of a FIFO lane, without reading the job: replay adds many.
  void add_ticket(Lane* lane, uint64_t rank_key, uint64_t seq, Job* job, int64_t now_ms);

  // --- Admission ---
  // Takes or frees the slots of the group and the keys for a job that becomes (or is no longer)
  // active. Called by Queue::place.
  void admit(Job* job, int64_t now_ms);
  void release(Job* job, int64_t now_ms);
  // Takes rate tokens of its group and keys. Call it just before admit().
  static void take_tokens(Job* job, int64_t now_ms);
  // Sets the group's share.
  void set_virtual_ms(Group* group, double virtual_ms, int64_t now_ms);

  // --- Fair shares ---
  // The queue's virtual time: the share with which a group begins that has pending jobs again. It
  // is at least the greatest share of a group when a job of it was admitted, and rises with each
  // run, by the run divided among all groups with pending jobs. So it passes the share of a waiting
  // group even if only new jobs are admitted. Never decreases; journaled.
  double virtual_ms() const { return virtual_ms_; }
  // Replay: raises it to this value.
  void raise_virtual_ms(double virtual_ms) { virtual_ms_ = std::max(virtual_ms_, virtual_ms); }
  // The group has a pending job again. Call it before add_ticket().
  void begin_backlog(Group* group, int64_t now_ms) {
    set_virtual_ms(group, std::max(group->virtual_ms, virtual_ms_), now_ms);
  }
  // Charges an estimated slot time when a job is admitted, and corrects it when the run ends. Call
  // charge_start before admit(), charge_end after release().
  void charge_start(Group* group, double guessed_ms, int64_t now_ms);
  void charge_end(Group* group, double guessed_ms, double real_ms, int64_t now_ms);
  // Its limits have changed, or a rate has refilled.
  void refresh_group(Group* group, int64_t now_ms);
  void refresh_key(Key* key, int64_t now_ms);

  // --- Configuration ---
  // The present arrival time of the rate of a group or key, for the journal.
  struct BoundRate {
    ConfigLevel level{};
    std::string name;
    double virtual_ms = 0;
    int64_t arrival_us = 0;
  };
  // Applies a change of the configuration. A group or key that the change names takes it over at
  // once; those of a whole level in their turn (reconfigure_some), with their old values until
  // then. Rates that have changed owe at most what Limiter::bound_arrival() allows, even if no job
  // names the group or key; those that owe less now are added to `bound`. Null for replay, whose
  // records hold the arrival times.
  void reconfigure(const ConfigChange& change, int64_t now_ms, std::vector<BoundRate>* bound);
  // Continues with those whose turn has not come, for about `steps` steps of at most some
  // microseconds.
  void reconfigure_some(size_t steps, int64_t now_ms, std::vector<BoundRate>* bound);
  bool is_reconfiguring() const { return turns_[0].has_value() || turns_[1].has_value(); }

  // --- The next job ---
  Band* band(uint8_t number) const { return bands_[number].get(); }
  // Bands in use, ascending.
  const std::vector<uint8_t>& used_bands() const { return used_bands_; }
  // The next lane of a band, or null if none is open. `match`: only lanes with one of these keys
  // (empty: all lanes).
  Lane* next(uint8_t band, std::span<const std::string> match) const;
  // Whether all limits of group and keys allow this job now; it need not be first.
  bool allows(const Job* job, int64_t now_ms) const;

  // Replay: stores the arrival time of a rate of a group or key that no job names.
  void keep_idle_rate(ConfigLevel level, Bytes name, int64_t arrival_us) {
    idle_rates_.keep(level, name, arrival_us);
  }
  const IdleRates& idle_rates() const { return idle_rates_; }
  // Whether a job has made a group or key of an idle rate since the last call.
  bool take_revived() { return std::exchange(revived_, false); }
  // Stores the recorded share of a group whose jobs come later, or have been removed since the
  // checkpoint's walk. After replay, or the unit of the record, a group without jobs has no share.
  void keep_absent_share(Bytes name, double virtual_ms) {
    absent_shares_[std::string(name)] = virtual_ms;
  }
  void forget_absent_shares() { absent_shares_.clear(); }
  // The state is complete: after a replay, and when a standby takes over.
  void end_replay();

  // --- Rates ---
  // Queue time at which a group or key next gets a token, or kNeverMs.
  int64_t next_rate_ms() const;
  // Returns whether any has.
  bool run_rates(int64_t now_ms);

  // The dispatch place of a lane whose first ticket is this one.
  ReadyKey ready_key(const Lane* lane, const Job* ticket) const;
  // That of a ready lane.
  ReadyKey place(const Lane* lane) const {
    if (lane->ready_in->group == nullptr) return lane->ready_key;
    return ready_key(lane, lane->first_ticket());
  }

  // --- Looking ahead (dispatch_order.h) ---
  // The state before a trial admission of a ready lane's first job, which undoes it. Trials are
  // undone in reverse order, with nothing else in between. `charged_ms`: charged to the group's
  // share, before its weight.
  struct Taken {
    Lane* lane = nullptr;
    Job* job = nullptr;
    Job* ticket = nullptr;
    double virtual_ms = 0;          // of the group, before the trial
    std::vector<Limiter> limiters;  // before the trial: the group's, then those of the keys
  };
  Taken take_first(Lane* lane, double charged_ms, int64_t now_ms);
  void put_back(const Taken& taken, int64_t now_ms);

  size_t memory_bytes() const;  // maintained, not counted by a walk
  // Verifies the invariants; for tests.
  void check(int64_t now_ms) const;

 private:
  // An entry of the index of rates that refill.
  struct Refill {
    Group* group;
    Key* key;
    bool operator==(const Refill&) const = default;
  };

  // How far a changed configuration has been applied.
  struct Turn {
    uint64_t cursor = 0;   // of the scan of groups or keys
    bool scanned = false;  // all of them
    std::string idle;      // the last name of idle_rates_ that had its turn
  };

  // Insert into and remove from an index of a lane, class or key. There are many of these, so their
  // memory is counted here (index_bytes_).
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
  int64_t revive_rate(ConfigLevel level, Bytes name);
  Group* join_group(Bytes name);
  KeySet* join_keys(std::span<const Bytes> names, int64_t now_ms);
  BandClass* join_class(uint8_t band, KeySet* keys);
  // Adds a set to a key. A key that is in many sets gets an index of their classes.
  void note_set(Key* key, KeySet* set, int64_t now_ms);
  // Adds a due ticket to its band and its lane.
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
  // `flipped`: the key that has just been closed or opened, or null.
  void refresh_class(BandClass* in_class, const Key* flipped);
  // Add a class to its place and the indexes of its keys, and remove it.
  void place_at_keys(BandClass* in_class, const Key* flipped);
  void unplace_at_keys(BandClass* in_class, const Key* flipped);
  static void check_classes(const Key* key);
  // Moves the lane to the index of a class; null: to none.
  void set_ready(Lane* lane, BandClass* in_class);
  // The key of a lane in the index of a class.
  ReadyKey key_in(const BandClass* in_class, const Lane* lane) const;
  // Own classes (lanes_own.cc).
  static bool can_be_own(const Lane* lane);
  static BandClass* find_own_class(const Group* group, uint8_t band);
  // The class is made if it does not exist, and dropped without a ready lane.
  BandClass* join_own_class(Group* group, uint8_t band);
  void drop_own_class(BandClass* own);
  void check_own_classes(const Group* group, int64_t now_ms) const;
  // Sets whether refresh_group() visits the lane.
  static void set_shared(Lane* lane, bool shared);
  // Whether some key of the set lacks this many slots.
  static bool is_short(const KeySet* set, uint32_t cost);
  static void list_large(Lane* lane);
  static void unlist_large(Lane* lane);
  // Adds a limiter to the index of rates, by the time of its next token, and removes it.
  void await_refill(Limiter& limiter, const Refill& refill, int64_t now_ms);
  void forget_refill(Limiter& limiter, const Refill& refill);
  void restore(Limiter& limiter, const Limiter& before, const Refill& refill);
  void put_in_backlog(Group* group);
  void take_from_backlog(Group* group);

  const QueueConfig& config_;
  SplitMap<Group, GroupTraits> groups_;
  SplitMap<Key, KeyTraits> keys_;
  std::map<std::vector<std::string>, std::unique_ptr<KeySet>> key_sets_;
  KeySet* no_keys_ = nullptr;  // the set without keys, once a job uses it
  SplitMap<Lane, LaneTraits> lanes_;
  std::array<std::unique_ptr<Band>, kBands> bands_;
  std::vector<uint8_t> used_bands_;
  // Groups with pending jobs by their share; maintained only with `fair on`.
  OrderedIndex<Group*> backlog_;  // those with a Group::backlog_weight
  uint64_t backlog_weight_ = 0;   // of all of them
  uint64_t limited_ = 0;          // groups and keys (is_limited)
  double virtual_ms_ = 0;
  size_t index_bytes_ = 0;
  OrderedIndex<Refill> refills_;
  IdleRates idle_rates_;
  bool revived_ = false;
  std::array<std::optional<Turn>, 2> turns_;  // of groups, of keys; empty: all have had theirs
  std::unordered_map<std::string, double> absent_shares_;
};

}  // namespace sluice
