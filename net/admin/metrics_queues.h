// The series of queues. They are separate from MetricSet so that those of many queues can be added.
//
// Plain data, used by one thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/execution/queue_names.h"
#include "net/admin/metric_set.h"
#include "net/resp/resp_value.h"

namespace sluice {

// Bounds of the distributions: 1 ms to four hours. They are most of what /metrics has: with samples
// of one band, each bound costs 180 bytes a queue.
inline constexpr std::array<int64_t, 18> kMetricBoundsMs = {
    1,    5,    10,     25,     50,     100,     250,       500,       1000,
    2500, 5000, 10'000, 30'000, 60'000, 300'000, 1'800'000, 3'600'000, 14'400'000};

// The series of one queue, or the sum of several; of their times the longest.
class QueueSeries {
 public:
  QueueSeries() = default;
  // `stats` is the map of Q.STATS; `buckets` follow kMetricBoundsMs.
  QueueSeries(const RespValue& stats, QueueBuckets buckets);

  // Number of waiting (in any state) and active jobs.
  double jobs() const;
  void add(const QueueSeries& other);
  // Bands without samples have no distributions.
  void put(const MetricLabels& labels, MetricSet& metrics) const;
  // The waiting times again, with the names and labels of the older execution queue's metrics
  // (docs/moving/redis-execution-queue.md).
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
  int64_t since_ms_ = 0;  // 0 for a sum
};

// The name under which the sum of the other queues is shown.
inline constexpr const char* kOtherQueues = "*";

// The series of all queues in a bounded number: only those with the most jobs keep their own.
class QueueSeriesSet {
 public:
  struct Line {
    QueueName queue;
    double jobs = 0;
    QueueSeries series;
  };

  explicit QueueSeriesSet(size_t limit) : limit_(limit) {}

  void take(QueueName queue, QueueSeries series);
  // Queues that kept their own series, in no particular order.
  std::vector<Line>& lines() { return lines_; }
  // The sums of the other queues, by database. One that is named like them is always among them.
  const std::map<int, QueueSeries>& rest() const { return rest_; }

 private:
  const size_t limit_;
  std::vector<Line> lines_;  // a heap with the smallest queue in front
  std::map<int, QueueSeries> rest_;
};

}  // namespace sluice
