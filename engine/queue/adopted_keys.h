// AdoptedKeys: the state of a queue that has adopted plain Redis keys (Q.ADOPT), besides those
// keys: their names, when each active member became active, where it came from, and which members
// were given back.
//
// What can be read from the keys is not kept here: engine/adopted/adopted_view.h counts, finds and
// walks in them. So this holds one small record for each active member and for each member that was
// given back and waits again; none for the others, however many wait. engine/adopted/adopted_work.h
// changes and journals it. Plain data of one queue, under the lock of the queue's shard.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/structures/ordered_index.h"

namespace sluice {

class Queue;

inline constexpr size_t kMaxAdoptedKeys = 256;  // one for each band
// This many members are adopted, or compared with the keys, in one hold of the locks. More that
// come with a whole key are counted, and told as one.
inline constexpr size_t kAdoptedAtOnce = 1000;

// The arguments of Q.ADOPT.
struct AdoptedDefinition {
  std::vector<std::string> pending;  // sorted sets, the most urgent band first
  std::string active;                // a set
  std::string payload_prefix;        // prefix of the payloads' keys; empty: no payloads
  std::string adopter;               // the user whose permissions apply to timers; empty: no user
  int64_t unit = 0;                  // score = band * unit + unix milliseconds; 0: no bands in
                                     // scores
  int64_t lease_ms = 0;              // 0: members may be active without limit

  bool names(Bytes key) const {
    return key == active || std::find(pending.begin(), pending.end(), key) != pending.end();
  }
  // The pending key that holds a band.
  size_t key_of(uint8_t band) const {
    return pending.size() == 1 ? 0 : std::min<size_t>(band, pending.size() - 1);
  }
};

// The bands of scores at this time by the wall clock: score = band * unit + unix milliseconds.
struct ScoreBands {
  int64_t unit;  // not 0
  int64_t wall_ms;

  // The lower bound for scores of this band and of less urgent ones.
  double lowest_score(int band) const {
    return static_cast<double>(wall_ms) + (band - 0.5) * static_cast<double>(unit);
  }
  uint8_t band_of(double score) const;
};

// The record of a member.
struct AdoptedMember {
  bool active = false;       // otherwise it was given back and waits again
  bool has_place = false;    // band and score are those from before it became active
  uint8_t band = 0;          // otherwise the queue's default band
  uint32_t reclaims = 0;     // how often its lease has expired
  int64_t since_ms = 0;      // queue time at which it became active or was given back
  int64_t since_steady = 0;  // the same by Unit::steady_ms
  double score = 0;
  uint64_t number = 0;  // set by AdoptedKeys; orders members of equal times by arrival
};

// How far the keys have been compared with the records of members (AdoptedWork::look_on).
struct AdoptedLook {
  bool open = false;
  std::optional<std::string> last = {};  // the record that was examined last
  bool in_set = false;  // all records have been; the members of the active set follow
  uint64_t cursor = 0;  // of that set
};

// An adoption as the watched keys see it. Shared by the queue and the watch on its keys
// (engine/keyspace/adopted_watch.h); changed under the locks of all its shards.
struct AdoptedGroup {
  Queue* queue = nullptr;  // null: the queue is deleted, or the adoption has ended
  int database = 0;        // Database::index()
  unsigned home = 0;       // the shard of the queue's key
  uint32_t shards = 0;     // a bit for that shard and for each shard of the adopted keys
  int64_t unit = 0;        // of the definition
  // A change happened while not all of them were locked, or there is more of it than one hold may
  // examine: the timers of `home` look at the keys, from the beginning.
  std::atomic<bool> missed{false};
  AdoptedLook look;  // the one that has begun

  bool must_look() const { return missed.load() || look.open; }
};

class AdoptedKeys {
 public:
  using Members = std::map<std::string, AdoptedMember, std::less<>>;
  using Node = Members::value_type;
  using Index = OrderedIndex<const Node*>;

  AdoptedDefinition definition;
  std::shared_ptr<AdoptedGroup> group = std::make_shared<AdoptedGroup>();

  const AdoptedMember* find(Bytes id) const;
  // Puts or replaces the record of a member. The node keeps its address.
  void put(Bytes id, const AdoptedMember& member);
  void erase(Bytes id);

  const Members& members() const { return members_; }
  // Active members, the longest active first: (since_ms, a number), for lists; (since_steady, the
  // same number), for leases.
  const Index& runs() const { return runs_; }
  const Index& leases() const { return leases_; }
  uint64_t active_in(uint8_t band) const { return active_in_[band]; }
  // Steady time at which the first lease expires, or INT64_MAX.
  int64_t next_due_steady() const;

  size_t memory_bytes() const;

 private:
  void place(const Node& node, bool in);

  Members members_;
  size_t id_bytes_ = 0;  // of the members
  uint64_t next_number_ = 1;
  Index runs_;
  Index leases_;
  std::array<uint32_t, 256> active_in_{};
};

}  // namespace sluice
