// Data about all queues for net/admin/ that no command returns: their names, their distributions
// with all buckets, what their history needs, their few largest groups, and what they have of a
// text.
//
// For any thread that holds no shard: each shard is locked while copying.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/ports/journal.h"
#include "engine/queue/queue_config.h"

namespace sluice {

class Engine;
class Queue;

struct QueueName {
  int database = 0;  // as clients number them
  std::string name;
  auto operator<=>(const QueueName&) const = default;
};

// The first `limit` names of a database, as clients number it, after `after` in the order of their
// bytes; null: from the first. Leaves out those of a shard that a busy script holds.
std::vector<std::string> queue_names(Engine& engine, int database, const std::string* after,
                                     size_t limit);

// What the history of a queue (net/admin/history.h) is made of.
struct QueueCounts {
  uint64_t added = 0;
  uint64_t started = 0;
  uint64_t ended = 0;
  uint64_t failed = 0;
  uint64_t waiting = 0;
  uint64_t active = 0;

  bool operator==(const QueueCounts&) const = default;
};
struct QueueSample : QueueCounts {
  QueueName queue;
  int64_t since_ms = 0;  // QueueStats::since_ms: another queue of this name has another one
  // If it has adopted plain keys, what waits and is active is 0: its jobs are in those keys.
  bool adopted = false;
};

// Lists all queues of the server in steps. A queue that exists all the time is listed once. A queue
// that is created or renamed meanwhile, or is in a shard that a busy script holds, may be left out.
class QueueWalk {
 public:
  // Returns about `limit` more, in no particular order; empty at the end.
  std::vector<QueueName> next(Engine& engine, size_t limit);
  // The same with their numbers.
  std::vector<QueueSample> next_samples(Engine& engine, size_t limit);
  // Whether a shard was left out.
  bool skipped() const { return skipped_; }

 private:
  template <class Line, class Make>
  std::vector<Line> next_lines(Engine& engine, size_t limit, Make make);

  unsigned shard_ = 0;
  bool skipped_ = false;
  // The last one of this shard: Queue::database and the name.
  std::optional<std::pair<int, std::string>> last_;
};

// A distribution of milliseconds: the number of values up to each of the given bounds.
struct BucketCounts {
  std::vector<uint64_t> up_to;
  uint64_t count = 0;
  double sum_ms = 0;
};
struct BandBuckets {
  std::string band;
  BucketCounts wait_ms;
  BucketCounts run_ms;
};
struct QueueBuckets {
  // The bands in which jobs have been started or have ended, the most urgent first.
  std::vector<BandBuckets> bands;
  bool pops_paused = false;  // by its configuration
  // The results are durable when the journal has reached this.
  Lsn gate = 0;
};
QueueBuckets queue_buckets(Engine& engine, const QueueName& queue,
                           std::span<const int64_t> bounds_ms);

// A band that has waiting jobs, or in which jobs have been started.
struct BandSample {
  uint8_t number = 0;
  std::string band;
  uint64_t waiting = 0;  // 0 in a queue that has adopted plain keys
  // The buckets of its waits that are not empty, in ascending order: the greatest value of each,
  // and the number of jobs in it since the distributions began.
  std::vector<std::pair<int64_t, uint64_t>> waits_ms;
};
// The most urgent first.
std::vector<BandSample> band_samples(Engine& engine, const QueueName& queue);

// The number of the last event of a queue; 0: it does not exist, or a script holds its shard.
struct LastEvent {
  uint64_t seq = 0;
  Lsn gate = 0;         // as of QueueBuckets
  bool exists = false;  // the queue
};
LastEvent last_event(Engine& engine, const QueueName& queue);

// What a queue has of a text that is searched.
struct FoundTag {
  uint64_t jobs = 0;   // that are pending or active
  uint64_t added = 0;  // since the statistics began
};
struct FoundInQueue {
  bool has_job = false;         // it may have a job with this id
  bool has_group = false;       // and has jobs of this group
  bool has_groups = false;      // it has jobs of any group
  std::optional<FoundTag> tag;  // the text is `name=value`, and the queue has a line for it
  Lsn gate = 0;                 // as of QueueBuckets
};
FoundInQueue find_in_queue(Engine& engine, const QueueName& queue, const std::string& text);

// Groups with jobs whose names begin with a text. Looks at about `limit` groups from a cursor on; 0
// is the beginning, and the end.
struct FoundGroups {
  std::vector<std::string> names;
  size_t looked_at = 0;
  uint64_t cursor = 0;
  Lsn gate = 0;  // as of QueueBuckets
};
FoundGroups find_groups_of(Engine& engine, const QueueName& queue, const std::string& begin,
                           uint64_t cursor, size_t limit);

// The jobs and slots of a group; of a key only its slots are known.
struct ScopeCount {
  std::string name{};
  uint64_t pending = 0;
  uint64_t active = 0;
  uint64_t delayed = 0;
  uint64_t blocked = 0;
  uint64_t waiting = 0;  // in any state
  uint64_t slots = 0;    // in use
  uint64_t max_active = 0;
  Paused paused = Paused::kNone;  // of a group
  uint64_t size = 0;              // the jobs of a group, the slots in use of a key

  // Adds the numbers, except the cap.
  void add(const ScopeCount& other);
};

// Finds the groups of a queue with the most jobs, or the keys with the most slots in use. It scans
// all of them in parts: scanning a million at once would block the shard for a tenth of a second.
class LargestScopes {
 public:
  LargestScopes(ConfigLevel level, size_t limit) : level_(level), limit_(limit) {}

  // Scans about a thousand more. Returns false at the end. The second form finds the queue and
  // locks its shard.
  bool go_on(const Queue& queue);
  bool go_on(Engine& engine, const QueueName& name);
  // Call it at the end: the largest, in descending order. Each has its numbers at the time it was
  // scanned.
  const std::vector<ScopeCount>& in_order();
  // The sum of the others, if any.
  const std::optional<ScopeCount>& rest() const { return rest_; }
  // The results are durable when the journal has reached this.
  Lsn gate() const { return gate_; }

 private:
  void keep(ScopeCount count, const std::string& name);
  void leave_out(const ScopeCount& count);

  const ConfigLevel level_;
  const size_t limit_;
  uint64_t cursor_ = 0;
  std::vector<ScopeCount> best_;  // a heap with the smallest in front
  std::optional<ScopeCount> rest_;
  Lsn gate_ = 0;
};

}  // namespace sluice
