#include "net/admin/metrics_queues.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace sluice {

namespace {

// Fields of Q.STATS.
constexpr MetricRow kGaugeRows[] = {
    {"pending", "queue_depth", "Jobs that may run as soon as a slot is free."},
    {"active", "queue_active", "Running jobs."},
    {"delayed", "queue_delayed", "Jobs waiting for their start time."},
    {"blocked", "queue_blocked", "Jobs waiting for other jobs."},
    {"waiting", "queue_waiting", "Pending, delayed and blocked jobs, and successors."},
    {"waiting_pops", "queue_waiting_pops", "Workers waiting for a job."},
    {"slots", "queue_slots_used", "Slots in use."},
    {"max_active", "queue_slots_max", "The effective cap on slots; 0: none."},
};
constexpr MetricRow kCounterRows[] = {
    {"added", "queue_enqueue_total", "Jobs added."},
    {"started", "queue_schedule_total", "Runs started."},
    {"completed", "queue_completed_total", "Jobs completed."},
    {"failed", "queue_failed_total", "Jobs failed."},
    {"expired", "queue_expired_total", "Jobs expired while waiting."},
    {"cancelled", "queue_cancelled_total", "Jobs cancelled."},
    {"reclaimed", "queue_reclaimed_total", "Leases expired."},
};

std::map<std::string, double> numbers_of(const RespValue& map) {
  std::map<std::string, double> numbers;
  for (size_t i = 0; i + 1 < map.items.size(); i += 2) {
    numbers[map.items[i].text] = map.items[i + 1].as_number();
  }
  return numbers;
}

void add_numbers(const std::map<std::string, double>& numbers,
                 std::map<std::string, double>& sums) {
  for (const auto& [name, number] : numbers) sums[name] += number;
}

void add_counts(const BucketCounts& counts, BucketCounts& sum) {
  sum.up_to.resize(std::max(sum.up_to.size(), counts.up_to.size()));
  for (size_t i = 0; i < counts.up_to.size(); ++i) sum.up_to[i] += counts.up_to[i];
  sum.count += counts.count;
  sum.sum_ms += counts.sum_ms;
}

MetricLabels with(const MetricLabels& labels, const char* name, const std::string& value) {
  MetricLabels all = labels;
  all.emplace_back(name, value);
  return all;
}

}  // namespace

QueueSeries::QueueSeries(const RespValue& stats, QueueBuckets buckets)
    : rejected_(numbers_of(stats.at("rejected"))),
      depths_(numbers_of(stats.at("by_priority"))),
      paused_(buckets.pops_paused ? 1 : 0),
      oldest_s_(stats.at("oldest_ms").as_number() / 1000),
      timer_lag_s_(stats.at("timer_lag_ms").as_number() / 1000),
      since_ms_(stats.at("since").integer) {
  static_assert(std::size(kGaugeRows) == kGauges && std::size(kCounterRows) == kCounters);
  for (size_t i = 0; i < kGauges; ++i) gauges_[i] = stats.at(kGaugeRows[i].field).as_number();
  for (size_t i = 0; i < kCounters; ++i) {
    counters_[i] = stats.at(kCounterRows[i].field).as_number();
  }
  for (BandBuckets& band : buckets.bands) {
    std::string name = band.band;
    depths_.try_emplace(name, 0);
    bands_.emplace(std::move(name), std::move(band));
  }
}

double QueueSeries::jobs() const {
  constexpr size_t kActive = 1;
  constexpr size_t kWaiting = 4;
  return gauges_[kActive] + gauges_[kWaiting];
}

void QueueSeries::add(const QueueSeries& other) {
  for (size_t i = 0; i < kGauges; ++i) gauges_[i] += other.gauges_[i];
  for (size_t i = 0; i < kCounters; ++i) counters_[i] += other.counters_[i];
  add_numbers(other.rejected_, rejected_);
  add_numbers(other.depths_, depths_);
  for (const auto& [name, band] : other.bands_) {
    add_counts(band.wait_ms, bands_[name].wait_ms);
    add_counts(band.run_ms, bands_[name].run_ms);
  }
  paused_ += other.paused_;
  oldest_s_ = std::max(oldest_s_, other.oldest_s_);
  timer_lag_s_ = std::max(timer_lag_s_, other.timer_lag_s_);
}

void QueueSeries::put(const MetricLabels& labels, MetricSet& metrics) const {
  for (size_t i = 0; i < kGauges; ++i) {
    metrics.gauge(kGaugeRows[i].name, kGaugeRows[i].help, labels, gauges_[i]);
  }
  // These counters outlive the process, and their start time is not known.
  for (size_t i = 0; i < kCounters; ++i) {
    metrics.counter(kCounterRows[i].name, kCounterRows[i].help, labels, counters_[i], 0);
  }
  for (const auto& [reason, count] : rejected_) {
    metrics.counter("queue_rejected_total", "Jobs rejected.", with(labels, "reason", reason), count,
                    since_ms_);
  }
  metrics.gauge("queue_oldest_seconds", "Waiting time of the pending job that has waited longest.",
                labels, oldest_s_);
  metrics.gauge("queue_timer_lag_seconds", "Delay of the queue's timers.", labels, timer_lag_s_);
  metrics.gauge("queue_paused", "1: paused by its configuration, no jobs are handed out.", labels,
                paused_);
  for (const auto& [name, depth] : depths_) {
    if (depth == 0 && !bands_.contains(name)) continue;
    metrics.gauge("queue_priority_depth", "Pending jobs by priority.",
                  with(labels, "priority", name), depth);
  }
  for (const auto& [name, band] : bands_) {
    const MetricLabels with_band = with(labels, "priority", name);
    const auto put = [&](const char* family, const char* help, const BucketCounts& counts) {
      if (counts.count == 0) return;
      metrics.histogram(family, help, with_band, kMetricBoundsMs, counts, since_ms_);
    };
    put("queue_wait_time_seconds", "Time from when a job may run to its start.", band.wait_ms);
    put("queue_run_time_seconds", "Time from the start of a run to its end.", band.run_ms);
  }
}

void QueueSeries::put_executions(const MetricLabels& labels, MetricSet& metrics) const {
  for (const auto& [name, band] : bands_) {
    if (band.wait_ms.count == 0) continue;
    metrics.histogram("queue_wait_time", "queue_wait_time_seconds of the execution queue.",
                      with(labels, "priority", to_lower(name)), kMetricBoundsMs, band.wait_ms,
                      since_ms_);
  }
}

void QueueSeriesSet::take(QueueName queue, QueueSeries series) {
  if (queue.name == kOtherQueues) return rest_[queue.database].add(series);
  const auto goes_first = [](const Line& a, const Line& b) {
    return a.jobs != b.jobs ? a.jobs > b.jobs : a.queue < b.queue;
  };
  const double jobs = series.jobs();
  lines_.push_back({std::move(queue), jobs, std::move(series)});
  std::push_heap(lines_.begin(), lines_.end(), goes_first);
  if (lines_.size() <= limit_) return;
  std::pop_heap(lines_.begin(), lines_.end(), goes_first);
  rest_[lines_.back().queue.database].add(lines_.back().series);
  lines_.pop_back();
}

}  // namespace sluice
