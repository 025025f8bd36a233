// /metrics: everything that dashboards and alerts ask for, read from the state at each scrape.
//
// Names without a prefix are those that the seeds' dashboards query; the server's own begin with
// sluice_. Queues that the token's user may not read are left out.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "engine/base/numbers.h"
#include "net/admin/api.h"
#include "net/admin/metrics_text.h"
#include "net/admin/routes.h"
#include "net/http/http_service.h"

namespace sluice {

namespace {

// 1 ms to four hours.
constexpr std::array<int64_t, 22> kBoundsMs = {
    1,       2,       5,         10,        25,        50,        100,    250,
    500,     1000,    2500,      5000,      10'000,    30'000,    60'000, 120'000,
    300'000, 600'000, 1'800'000, 3'600'000, 7'200'000, 14'400'000};
constexpr size_t kShownGroups = 20;

struct FieldRow {
  const char* field;
  const char* name;
  const char* help;
};

// Of Q.STATS.
constexpr FieldRow kQueueGauges[] = {
    {"pending", "queue_depth", "Jobs that may run as soon as there is room."},
    {"active", "queue_active", "Jobs that run."},
    {"delayed", "queue_delayed", "Jobs that wait for their time."},
    {"blocked", "queue_blocked", "Jobs that wait for other jobs."},
    {"waiting", "queue_waiting", "Pending, delayed and blocked jobs, and successors."},
    {"waiting_pops", "queue_waiting_pops", "Workers that wait for a job."},
    {"slots", "queue_slots_used", "Slots in use."},
    {"max_active", "queue_slots_max", "The cap on slots that counts now; 0: none."},
};
constexpr FieldRow kQueueCounters[] = {
    {"added", "queue_enqueue_total", "Jobs that were added."},
    {"started", "queue_schedule_total", "Runs that were begun."},
    {"completed", "queue_completed_total", "Jobs that were completed."},
    {"failed", "queue_failed_total", "Jobs that have failed."},
    {"expired", "queue_expired_total", "Jobs whose time to wait was over."},
    {"cancelled", "queue_cancelled_total", "Jobs that were cancelled."},
    {"reclaimed", "queue_reclaimed_total", "Leases that ran out."},
};

// Of INFO.
constexpr FieldRow kServerGauges[] = {
    {"connected_clients", "sluice_connections", "RESP connections."},
    {"blocked_clients", "sluice_blocked_clients", "Clients that wait in a blocking command."},
    {"used_memory", "sluice_memory_used_bytes", "Memory that is allocated."},
    {"used_memory_rss", "sluice_memory_resident_bytes", "Memory that the process has."},
    {"used_memory_peak", "sluice_memory_peak_bytes", "The most that was allocated."},
    {"maxmemory", "sluice_memory_max_bytes", "The limit of memory; 0: none."},
    {"uptime_in_seconds", "sluice_uptime_seconds", "Since the start."},
    {"sluice_journal_last_lsn", "sluice_journal_last_lsn", "The last unit of the journal."},
    {"sluice_journal_durable_lsn", "sluice_journal_durable_lsn", "The last one that is durable."},
    {"sluice_journal_unwritten_bytes", "sluice_journal_unwritten_bytes",
     "Journal that the kernel does not have yet."},
    {"sluice_journal_last_commit_units", "sluice_journal_batch_units", "Units in the last commit."},
    {"sluice_checkpoint_running", "sluice_checkpoint_running", "A checkpoint is being written."},
    {"sluice_checkpoint_bytes", "sluice_checkpoint_bytes", "Size of the last checkpoint."},
    {"rdb_last_save_time", "sluice_checkpoint_last_timestamp_seconds",
     "When the last checkpoint was written."},
    {"rdb_last_bgsave_time_sec", "sluice_checkpoint_last_duration_seconds",
     "How long it took; -1: there was none."},
    {"sluice_data_directory_bytes", "sluice_data_directory_bytes", "Size of the data directory."},
    {"sluice_free_disk_bytes", "sluice_disk_free_bytes", "Free space on its disk."},
    {"sluice_disk_nearly_full", "sluice_disk_nearly_full", "What grows is refused."},
};
constexpr FieldRow kServerCounters[] = {
    {"total_commands_processed", "sluice_commands_total", "Commands that were run."},
    {"total_error_replies", "sluice_errors_total", "Commands that ended with an error."},
    {"total_connections_received", "sluice_connections_received_total", "RESP connections so far."},
    {"rejected_connections", "sluice_connections_rejected_total",
     "RESP connections that were refused."},
    {"total_net_input_bytes", "sluice_net_input_bytes_total", "Bytes from RESP clients."},
    {"total_net_output_bytes", "sluice_net_output_bytes_total", "Bytes to RESP clients."},
    {"sluice_journal_units", "sluice_journal_units_total", "Units that were appended."},
    {"sluice_journal_commits", "sluice_journal_commits_total", "Commits that were written."},
    {"sluice_journal_bytes", "sluice_journal_bytes_total", "Bytes of commits."},
    {"sluice_checkpoints_completed", "sluice_checkpoints_total", "Checkpoints that were written."},
    {"sluice_checkpoints_failed", "sluice_checkpoints_failed_total", "Checkpoints that failed."},
};

void put_groups(MetricsText& text, Exchange& exchange, const QueueName& queue,
                const MetricLabels& labels) {
  const RespValue groups = exchange.run({"Q.STATS", queue.name, "BY", "GROUP"});
  if (!groups.is_map()) return;
  // The largest come first; `*` is the rest.
  const size_t count = std::min(groups.items.size() / 2, kShownGroups);
  for (size_t i = 0; i < count; ++i) {
    MetricLabels with_group = labels;
    with_group.emplace_back("group", groups.items[2 * i].text);
    const RespValue& line = groups.items[2 * i + 1];
    text.gauge("queue_group_depth", "Pending jobs of the groups with the most jobs.", with_group,
               line.at("pending").as_number());
    text.gauge("queue_group_active", "Active jobs of the groups with the most jobs.", with_group,
               line.at("active").as_number());
  }
}

void put_bands(MetricsText& text, Exchange& exchange, const QueueName& queue,
               const MetricLabels& labels, const RespValue& stats) {
  const RespValue& depths = stats.at("by_priority");
  for (size_t i = 0; i + 1 < depths.items.size(); i += 2) {
    MetricLabels with_band = labels;
    with_band.emplace_back("priority", depths.items[i].text);
    text.gauge("queue_priority_depth", "Pending jobs by priority.", with_band,
               depths.items[i + 1].as_number());
  }
  const QueueBuckets buckets = queue_buckets(*exchange.service().state().engine, queue, kBoundsMs);
  exchange.raise_gate(buckets.gate);
  for (const BandBuckets& band : buckets.bands) {
    MetricLabels with_band = labels;
    with_band.emplace_back("priority", band.band);
    text.histogram("queue_wait_time_seconds", "From when a job might run to its start.", with_band,
                   kBoundsMs, band.wait_ms);
    text.histogram("queue_run_time_seconds", "From the start of a run to its end.", with_band,
                   kBoundsMs, band.run_ms);
  }
}

void put_queue(MetricsText& text, Exchange& exchange, const QueueName& queue) {
  exchange.select(queue.database);
  const RespValue stats = exchange.run({"Q.STATS", queue.name});
  if (!stats.is_map()) return;
  const MetricLabels labels = {{"db", std::to_string(queue.database)}, {"queue", queue.name}};
  for (const FieldRow& row : kQueueGauges) {
    text.gauge(row.name, row.help, labels, stats.at(row.field).as_number());
  }
  for (const FieldRow& row : kQueueCounters) {
    text.counter(row.name, row.help, labels, stats.at(row.field).as_number());
  }
  const RespValue& rejected = stats.at("rejected");
  for (size_t i = 0; i + 1 < rejected.items.size(); i += 2) {
    MetricLabels with_reason = labels;
    with_reason.emplace_back("reason", rejected.items[i].text);
    text.counter("queue_rejected_total", "Jobs that were refused.", with_reason,
                 rejected.items[i + 1].as_number());
  }
  text.gauge("queue_oldest_seconds", "For how long the longest-waiting pending job has been due.",
             labels, stats.at("oldest_ms").as_number() / 1000);
  text.gauge("queue_timer_lag_seconds", "How late the queue's timers run.", labels,
             stats.at("timer_lag_ms").as_number() / 1000);
  put_bands(text, exchange, queue, labels, stats);
  put_groups(text, exchange, queue, labels);
}

std::optional<double> info_number(Bytes info, const std::string& field) {
  const std::string wanted = "\n" + field + ":";
  const size_t at = info.find(wanted);
  if (at == Bytes::npos) return std::nullopt;
  const Bytes rest = info.substr(at + wanted.size());
  return parse_double(rest.substr(0, rest.find('\r')));
}

void put_server(MetricsText& text, Exchange& exchange) {
  const RespValue info = exchange.run({"INFO", "everything"});
  if (info.is_error()) return;
  for (const FieldRow& row : kServerGauges) {
    const auto value = info_number(info.text, row.field);
    if (value) text.gauge(row.name, row.help, {}, *value);
  }
  for (const FieldRow& row : kServerCounters) {
    const auto value = info_number(info.text, row.field);
    if (value) text.counter(row.name, row.help, {}, *value);
  }
}

// Bucket i of the journal holds what took less than 2^i microseconds; bounds here are milliseconds,
// so it is shown from 2^10 microseconds on, within 2.4 %.
void put_journal(MetricsText& text, const GroupCommitJournal& journal) {
  const JournalStats stats = journal.stats();
  constexpr size_t kFirst = 10;
  std::vector<int64_t> bounds_ms;
  BucketCounts counts;
  uint64_t seen = 0;
  for (size_t i = 0; i < JournalStats::kSyncBuckets; ++i) {
    seen += stats.sync_us[i];
    if (i < kFirst) continue;
    bounds_ms.push_back(int64_t{1} << (i - kFirst));
    counts.up_to.push_back(seen);
  }
  counts.count = stats.syncs;
  counts.sum_ms = static_cast<double>(stats.sync_us_total) / 1000;
  text.histogram("sluice_journal_sync_seconds", "How long the syncs of commits took.", {},
                 bounds_ms, counts);
}

void put_http(MetricsText& text, HttpService& service) {
  const HttpService::Counters& counters = service.counters();
  const auto value = [](const std::atomic<uint64_t>& counter) {
    return static_cast<double>(counter.load(std::memory_order_relaxed));
  };
  text.gauge("sluice_http_connections", "HTTP connections.", {}, value(counters.connections));
  text.counter("sluice_http_connections_received_total", "HTTP connections so far.", {},
               value(counters.connections_received));
  text.counter("sluice_http_connections_rejected_total", "HTTP connections that were refused.", {},
               value(counters.connections_rejected));
  text.counter("sluice_http_requests_total", "HTTP requests.", {}, value(counters.requests));
  text.counter("sluice_http_timeouts_total", "HTTP clients that were too slow.", {},
               value(counters.timeouts));
}

void get_metrics(Exchange& exchange) {
  if (respond_busy(exchange)) return;
  const std::string* accept = exchange.request().header("accept");
  const bool open_metrics =
      accept != nullptr && accept->find("application/openmetrics-text") != std::string::npos;
  MetricsText text(open_metrics);
  HttpService& service = exchange.service();
  for (const QueueName& queue : queue_names(*service.state().engine)) {
    put_queue(text, exchange, queue);
  }
  exchange.select(0);
  put_server(text, exchange);
  const GroupCommitJournal* journal = service.state().journal.load(std::memory_order_acquire);
  if (journal != nullptr) put_journal(text, *journal);
  put_http(text, service);
  HttpResponse response;
  response.content_type = open_metrics
                              ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                              : "text/plain; version=0.0.4; charset=utf-8";
  response.body = text.take();
  exchange.respond(std::move(response));
}

}  // namespace

std::vector<Route> metric_routes() {
  return {{.pattern = "/metrics",
           .access = Access::kReady,
           .handler = get_metrics,
           .summary = "Series for Prometheus; in OpenMetrics where Accept asks for it.",
           .answer = "Metrics",
           .content_type = "text/plain"}};
}

}  // namespace sluice
