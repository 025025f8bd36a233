// AdoptedView: the contents of a queue that has adopted Redis keys (Q.ADOPT), read from those keys:
// counts by band, places, times, walks.
//
// It stores no results: all numbers come from the counted trees of the sorted sets and from the
// size of the set, at the time of the call. A handle of a few pointers, made for each command.
// REQUIRES for all functions: the locks of all shards of the queue's group.
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

// The place of a member in the keys.
struct AdoptedPlace {
  std::string id;
  bool active = false;
  bool pending = false;  // may be set beside `active`, which then wins
  size_t key = 0;        // of a pending member
  uint8_t band = 0;
  double score = 0;

  bool is_nowhere() const { return !active && !pending; }
};

// The counters of a band.
struct AdoptedBand {
  uint8_t number = 0;
  uint64_t pending = 0;
  uint64_t active = 0;
  int64_t oldest_ms = -1;  // the age of its oldest member; -1: no member, or unknown
};

// A key that holds a value of the wrong type.
struct AdoptedWarning {
  std::string key;
  std::string what;  // " holds a list, not a set: ..."
};

struct AdoptedPage {
  std::vector<AdoptedPlace> places;
  std::string cursor = "0";
  size_t looked_at = 0;  // as of JobPage
};

class AdoptedView {
 public:
  // Scores use the wall clock. REQUIRES: queue.adopted is not null.
  AdoptedView(Shards& shards, const Queue& queue, const Times& now);

  // Null: absent, expired, or of another type.
  const SortedSet* pending(size_t key) const;
  const Set* active() const;

  uint64_t pending_count() const;
  uint64_t active_count() const;
  // The bands that have a name (among those that the keys can hold) or members, the most urgent
  // first.
  std::vector<AdoptedBand> bands() const;
  std::vector<AdoptedWarning> warnings() const;
  // The key of a member's payload, which need not exist. Returns nothing if the queue has no
  // payloads, or if the key is one of the queue's own.
  std::optional<std::string> payload_key(Bytes id) const;

  AdoptedPlace find(Bytes id) const;
  // The number of pending members before it, by band and score.
  uint64_t position(const AdoptedPlace& place) const;
  uint8_t band_of(size_t key, double score) const;
  size_t key_of(uint8_t band) const { return definition_.key_of(band); }
  // Whether a member can be moved to the band.
  bool has_band(uint8_t band) const;
  // When a member with this score was added, in unix milliseconds: the score without its band, in
  // seconds or milliseconds. Returns nothing if that cannot be a time.
  std::optional<int64_t> added_ms(uint8_t band, double score) const;
  // The score for this time in this band, in the unit of the queue's other scores.
  double score_of(uint8_t band, int64_t time_ms) const;
  // The range [first, end) of a band in its sorted set.
  std::pair<uint64_t, uint64_t> range_of(uint8_t band, const SortedSet& set) const;

  // A score before or behind all others of the band; `score` if it has none. A member that is
  // already first or last keeps its score.
  double front_score(const AdoptedPlace& place, uint8_t band, double score) const;
  double back_score(const AdoptedPlace& place, uint8_t band, double score) const;

  // The bytes of a page that a member takes. Null: they do not count.
  using Weight = std::function<size_t(const AdoptedPlace& place)>;
  // The next step of a walk: first the pending members by band and score, then the active ones, the
  // longest active first. The bounds are those of walk_jobs(). Returns false if the cursor does not
  // belong to such a walk.
  bool walk(const Selector& selector, JobOrder order, Bytes cursor, size_t limit, AdoptedPage& page,
            const Weight& weigh = nullptr) const;

 private:
  const Entry* find_entry(const std::string& key) const;
  ScoreBands score_bands() const { return {definition_.unit, now_.wall_ms}; }
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
