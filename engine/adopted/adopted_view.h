// AdoptedView: a queue that shows plain Redis keys (Q.ADOPT), read from those keys: counts by band,
// places, times, walks.
//
// Nothing here is remembered: the figures come from the counted trees of the sorted sets and from
// the size of the set, at the moment of the question. A handle of a few pointers, made for each
// command. REQUIRES for everything here: the locks of all shards of the queue's group.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/keyspace/collections.h"
#include "engine/keyspace/shard.h"
#include "engine/queue/adopted_keys.h"
#include "engine/queue/selector.h"

namespace sluice {

// A member as it stands in the keys.
struct AdoptedPlace {
  std::string id;
  bool active = false;
  bool pending = false;  // both: pending too, which counts only where it is not active
  size_t key = 0;        // of a pending one
  uint8_t band = 0;
  double score = 0;

  bool is_nowhere() const { return !active && !pending; }
};

// What is counted of a band.
struct AdoptedBand {
  uint8_t number = 0;
  uint64_t pending = 0;
  uint64_t active = 0;
  int64_t oldest_ms = -1;  // how long ago the first of them was added; -1: none, or unknown
};

// A key that holds another type.
struct AdoptedWarning {
  std::string key;
  std::string what;  // " holds a list, not a set: ..."
};

struct AdoptedPage {
  std::vector<AdoptedPlace> places;
  std::string cursor = "0";
};

class AdoptedView {
 public:
  // Scores go by the wall clock. REQUIRES: queue.adopted is not null.
  AdoptedView(Shards& shards, const Queue& queue, const Times& now);

  // Null: absent, expired, or of another type.
  const SortedSet* pending(size_t key) const;
  const Set* active() const;

  uint64_t pending_count() const;
  uint64_t active_count() const;
  // Bands that have a name (of those that the keys can hold) or members, the most urgent first.
  std::vector<AdoptedBand> bands() const;
  std::vector<AdoptedWarning> warnings() const;
  // The key of a member's payload, whether it is there or not. Nothing where the queue knows of no
  // payloads, and where that is one of the queue's own keys.
  std::optional<std::string> payload_key(Bytes id) const;

  AdoptedPlace find(Bytes id) const;
  // Pending members before it, by band and score.
  uint64_t position(const AdoptedPlace& place) const;
  uint8_t band_of(size_t key, double score) const;
  size_t key_of(uint8_t band) const { return definition_.key_of(band); }
  // Bands that a member can be moved to.
  bool has_band(uint8_t band) const;
  // When a member with this score was added, unix milliseconds: the score without its band, in
  // seconds or milliseconds. Nothing where that cannot be a time.
  std::optional<int64_t> added_ms(uint8_t band, double score) const;
  // The score of this time in this band, in the unit that the queue's other scores have.
  double score_of(uint8_t band, int64_t time_ms) const;
  // The places [first, end) of a band in its sorted set.
  std::pair<uint64_t, uint64_t> range_of(uint8_t band, const SortedSet& set) const;

  // How many bytes of a page a member takes. Null: they do not matter.
  using Weight = std::function<size_t(const AdoptedPlace& place)>;
  // The next step of a walk, first through the pending members by band and score, then through the
  // active ones, the longest first; as far as walk_jobs() goes. False: the cursor is none of such a
  // walk.
  bool walk(const Selector& selector, JobOrder order, Bytes cursor, size_t limit, AdoptedPage& page,
            const Weight& weigh = nullptr) const;

 private:
  const Entry* find_entry(const std::string& key) const;
  double lowest_score(int band) const;
  AdoptedBand count(uint8_t band) const;
  bool matches(const Selector& selector, const AdoptedPlace& place, int64_t age_ms) const;
  struct Step;
  bool walk_pending(Step& step, size_t key, Bytes after) const;
  bool walk_active(Step& step, Bytes after) const;

  Shards& shards_;
  const Queue& queue_;
  const AdoptedKeys& adopted_;
  const AdoptedDefinition& definition_;
  const Times now_;
};

}  // namespace sluice
