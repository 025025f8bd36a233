// The series of queues, apart from MetricSet, so that those of many queues can be summed.
//
// Plain data; one thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/execution/queue_names.h"
#include "net/admin/metric_set.h"
#include "net/resp/resp_value.h"

namespace sluice {

// Bounds of the distributions: 1 ms to four hours.
inline constexpr std::array<int64_t, 22> kMetricBoundsMs = {
    1,       2,       5,         10,        25,        50,        100,    250,
    500,     1000,    2500,      5000,      10'000,    30'000,    60'000, 120'000,
    300'000, 600'000, 1'800'000, 3'600'000, 7'200'000, 14'400'000};

// What is told of one queue, or of many in sum; of those the longest of the times.
class QueueSeries {
 public:
  QueueSeries() = default;
  // `stats` is the map of Q.STATS; `buckets` are by kMetricBoundsMs.
  QueueSeries(const RespValue& stats, QueueBuckets buckets);

  // Jobs that wait, in whatever state, and active ones.
  double jobs() const;
  void add(const QueueSeries& other);
  // Bands without samples have no distributions.
  void put(const MetricLabels& labels, MetricSet& metrics) const;
  // The waits once more, as the execution queue's own metrics are named and labelled where
  // docs/moving/redis-execution-queue.md finds them.
  void put_executions(const MetricLabels& labels, MetricSet& metrics) const;

 private:
  static constexpr size_t kGauges = 8;
  static constexpr size_t kCounters = 7;

  std::array<double, kGauges> gauges_{};
  std::array<double, kCounters> counters_{};
  std::map<std::string, double> rejected_;  // by reason
  std::map<std::string, double> depths_;    // by band
  std::map<std::string, BandBuckets> bands_;
  double paused_ = 0;
  double oldest_s_ = 0;
  double timer_lag_s_ = 0;
  int64_t since_ms_ = 0;  // of many: 0
};

// Of all queues, a bounded number of series: those with the most jobs keep their own.
class QueueSeriesSet {
 public:
  struct Line {
    QueueName queue;
    double jobs = 0;
    QueueSeries series;
  };

  explicit QueueSeriesSet(size_t limit) : limit_(limit) {}

  void take(QueueName queue, QueueSeries series);
  // Those that have kept their own, in no certain order.
  std::vector<Line>& lines() { return lines_; }
  // The sums of the others, by database.
  const std::map<int, QueueSeries>& rest() const { return rest_; }

 private:
  const size_t limit_;
  std::vector<Line> lines_;  // a heap, the one with the fewest jobs in front
  std::map<int, QueueSeries> rest_;
};

}  // namespace sluice
