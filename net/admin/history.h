// History: what happened in each queue in the last hour, by five seconds, and in the last day, by
// minutes. It feeds the charts of the page.
//
// Intervals are numbered by the wall clock (unix time / step). If the clock is stepped back, what
// is recorded for the time after it is dropped, and recorded anew; a step forward is a gap. An
// interval without a sample (the server did not run) is a gap too. In one with a sample a queue has
// a row only if something changed, so an idle queue has just its last numbers.
//
// A queue's history belongs to its name, and ends with the queue: by DEL, RENAME, FLUSHALL.
//
// All memory is counted. Beyond the limit the hours of queues go, that of the one that has been
// idle longest first, and when there are none left the days, in the same order.
//
// Threads: HistoryKeeper (net/admin/history_keeper.h) fills it on I/O thread 0, requests read it
// on any. A mutex guards it, which is held for a small part of a millisecond; not before load()
// has ended, until which it is empty for readers.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/base/hash.h"
#include "engine/base/mutex.h"
#include "engine/execution/queue_names.h"
#include "net/admin/history_rows.h"

namespace sluice {

enum class HistoryRange : uint8_t { kHour, kDay };
struct HistorySteps {
  int64_t step_ms;
  int64_t count;
};
inline constexpr HistorySteps kHourSteps{5'000, 720};
inline constexpr HistorySteps kDaySteps{60'000, 1440};
inline constexpr int64_t kSlotsAMinute = kDaySteps.step_ms / kHourSteps.step_ms;
inline constexpr HistorySteps steps_of(HistoryRange range) {
  return range == HistoryRange::kHour ? kHourSteps : kDaySteps;
}

// The values of an interval, in this order; those of a band.
enum HistoryColumn : uint8_t { kAdded, kEnded, kFailed, kWaiting, kActive, kWaitP50, kWaitP95 };
inline constexpr size_t kHistoryColumns = 7;
enum HistoryBandColumn : uint8_t { kBandWaiting, kBandWaitP50, kBandWaitP95 };
inline constexpr size_t kHistoryBandColumns = 3;

template <size_t kColumns>
using HistoryColumns = std::array<std::vector<HistoryValue>, kColumns>;

// What is shown of a queue: a value for each interval of the range, or kNoValue.
struct HistoryView {
  int64_t start_ms = 0;
  bool reduced = false;  // some of it has been dropped for want of memory
  HistoryColumns<kHistoryColumns> queue;
  // All jobs that have failed up to the end of the last interval, for those who add what has
  // happened since; nothing for a queue that has not been seen.
  std::optional<uint64_t> failed_total;
  std::vector<std::pair<std::string, HistoryColumns<kHistoryBandColumns>>> bands;
};

class History {
 public:
  // --- Filling, on one thread ---
  // Begins a sample of all queues, at the end of the interval `slot` (of five seconds). `counted`:
  // the sample before was at its beginning, so what happened since happened in it. `queue_ms`:
  // queue time.
  void begin_sample(int64_t slot, int64_t queue_ms, bool counted);
  // Returns whether the queue has changed since the last sample; then put() follows.
  bool look(const QueueSample& sample);
  void put(const QueueSample& sample, const std::vector<BandSample>& bands);
  // `complete`: all queues were looked at. Then forget_gone() follows, until it returns false:
  // it forgets the queues that are no more, some at a time.
  void end_sample(bool complete);
  bool forget_gone();
  // 0: it stays empty.
  void set_limit(uint64_t bytes);
  // Whether it has changed since this was last asked.
  bool take_changed();

  // --- The file ---
  // A walk over the queues that has not ended is given up.
  void begin_walk();
  // Appends the next part of it; returns false after the last one. `at_end`: also what is known of
  // the present minute. Nothing else may change it until then.
  bool write(std::string& to, bool at_end);
  // Reads a file, which may be empty, and lets readers in. Returns false if it is damaged or of
  // another version; it is dropped then.
  bool load(Bytes file, int64_t wall_ms);

  // --- Any thread ---
  HistoryView view(const QueueName& queue, HistoryRange range, int64_t wall_ms) const;
  // load() has ended.
  bool ready() const { return ready_.load(std::memory_order_acquire); }
  uint64_t memory_bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  using QueueRows = HistoryRows<kHistoryColumns>;
  using BandRows = HistoryRows<kHistoryBandColumns>;
  struct Band {
    uint8_t number = 0;
    std::string name;
    uint64_t waiting = 0;
    bool seen = false;  // `waits` are those of the last change
    WaitCounts waits;
    BandRows rows;
  };
  // The sums of a minute that has not ended.
  struct Minute {
    int64_t slot = 0;
    uint64_t added = 0;
    uint64_t ended = 0;
    uint64_t failed = 0;
    WaitCounts waits;
  };
  struct Entry;
  using Entries = std::list<Entry*>;
  // What is known of a queue in which something happened within the last day.
  struct Detail {
    QueueRows hour;
    QueueRows day;
    std::vector<Band> bands;
    std::unique_ptr<Minute> minute;
    // Its places, if it is in these lists.
    Entries::iterator in_hours;
    Entries::iterator in_days;
    bool has_hour = false;
    bool listed = false;

    size_t memory_bytes() const;
    // The interval of five seconds.
    int64_t last_change() const;
  };
  struct Entry {
    QueueCounts last;      // at the last sample
    int64_t since_ms = 0;  // as QueueSample's; 0: unknown
    // Intervals of five seconds: the first one that is known; the last ones that have been dropped.
    int64_t known_since = 0;
    int64_t lost_hour = -1;
    int64_t lost_day = -1;
    uint64_t sample = 0;  // the last one that has seen it
    std::unique_ptr<Detail> detail;
  };
  struct NameHash {
    size_t operator()(const QueueName& name) const {
      return hash_bytes(name.name) + static_cast<size_t>(name.database);
    }
  };
  using Map = std::unordered_map<QueueName, Entry, NameHash>;

  Entry* find_or_add(const QueueSample& sample) REQUIRES(mutex_);
  bool continues(const Entry& entry, const QueueSample& sample) const;
  Detail& need_detail(Entry& entry) REQUIRES(mutex_);
  WaitCounts put_bands(Entry& entry, const std::vector<BandSample>& bands, uint64_t started)
      REQUIRES(mutex_);
  void put_minute(Entry& entry, const QueueSample& sample, const WaitCounts& waits)
      REQUIRES(mutex_);
  static void end_minute(Entry& entry);
  void age(Entry& entry) REQUIRES(mutex_);
  void list(Entry& entry, bool changed) REQUIRES(mutex_);
  void drop_hour(Entry& entry) REQUIRES(mutex_);
  void drop_detail(Entry& entry) REQUIRES(mutex_);
  void erase(Map::iterator entry) REQUIRES(mutex_);
  void trim() REQUIRES(mutex_);
  void clear() REQUIRES(mutex_);
  void count_bytes(size_t before, size_t after) {
    bytes_.store(memory_bytes() - before + after, std::memory_order_relaxed);
  }
  static size_t bytes_of(const Map::value_type& entry);
  void write_entry(std::string& to, const Map::value_type& entry) const REQUIRES(mutex_);
  bool read_entry(Bytes& from) REQUIRES(mutex_);
  bool read_file(Bytes file) REQUIRES(mutex_);
  bool sampled(HistoryRange range, int64_t slot) const REQUIRES(mutex_);
  uint64_t unended_failures(const Entry& entry) const REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::atomic<bool> ready_{false};
  std::atomic<uint64_t> bytes_{0};
  Map map_ GUARDED_BY(mutex_);
  // Those with rows of the hour, and those with a detail, the longest idle first.
  Entries hours_ GUARDED_BY(mutex_);
  Entries days_ GUARDED_BY(mutex_);
  uint64_t limit_ GUARDED_BY(mutex_) = 0;
  bool full_ GUARDED_BY(mutex_) = false;  // there was no room for a queue
  bool changed_ GUARDED_BY(mutex_) = false;

  // The sample that is being taken, or the last one.
  int64_t slot_ GUARDED_BY(mutex_) = 0;
  uint64_t sample_ GUARDED_BY(mutex_) = 0;
  bool counted_ GUARDED_BY(mutex_) = false;
  bool stepped_back_ GUARDED_BY(mutex_) = false;
  int64_t queue_ms_ GUARDED_BY(mutex_) = 0;
  int64_t queue_ms_before_ GUARDED_BY(mutex_) = -1;  // of the sample before; -1: none
  // The last complete one.
  int64_t last_slot_ GUARDED_BY(mutex_) = 0;
  // The slots that have been sampled, at the slot modulo the number of places.
  std::array<int64_t, kHourSteps.count> hour_sampled_ GUARDED_BY(mutex_){};
  std::array<int64_t, kDaySteps.count> day_sampled_ GUARDED_BY(mutex_){};
  // Where the part that is being written or forgotten begins.
  Map::iterator next_ GUARDED_BY(mutex_);
  uint32_t sum_ GUARDED_BY(mutex_) = 0;  // of the part of the file that has been written
  bool walking_ GUARDED_BY(mutex_) = false;
};

}  // namespace sluice
