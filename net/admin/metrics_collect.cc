// Names without a prefix are those queried by the older systems' dashboards; the server's own begin
// with sluice_.
#include "net/admin/metrics_collect.h"

#include <algorithm>
#include <initializer_list>

#include "engine/base/numbers.h"
#include "engine/ports/group_port.h"
#include "net/admin/metrics_queues.h"
#include "net/http/http_service.h"
#include "net/io/io_thread.h"
#include "net/io/turns.h"

namespace sluice {

namespace {

// Fields of INFO.
constexpr MetricRow kServerGauges[] = {
    {"connected_clients", "sluice_connections", "RESP connections."},
    {"blocked_clients", "sluice_blocked_clients", "Clients waiting in a blocking command."},
    {"used_memory", "sluice_memory_used_bytes", "Allocated memory."},
    {"used_memory_rss", "sluice_memory_resident_bytes", "Resident memory of the process."},
    {"used_memory_peak", "sluice_memory_peak_bytes", "Peak of allocated memory."},
    {"maxmemory", "sluice_memory_max_bytes", "Memory limit; 0: none."},
    {"uptime_in_seconds", "sluice_uptime_seconds", "Seconds since the start."},
    {"sluice_queue_time_ahead_seconds", "sluice_queue_time_ahead_seconds",
     "Queue time minus wall clock."},
    {"sluice_journal_last_lsn", "sluice_journal_last_lsn",
     "Number of the last unit of the journal."},
    {"sluice_journal_durable_lsn", "sluice_journal_durable_lsn",
     "Number of the last durable unit."},
    {"sluice_journal_unwritten_bytes", "sluice_journal_unwritten_bytes",
     "Journal bytes not yet passed to the kernel."},
    {"sluice_journal_last_commit_units", "sluice_journal_batch_units", "Units in the last commit."},
    {"sluice_checkpoint_running", "sluice_checkpoint_running", "A checkpoint is being written."},
    {"sluice_checkpoint_bytes", "sluice_checkpoint_bytes", "Size of the last checkpoint."},
    {"rdb_last_save_time", "sluice_checkpoint_last_timestamp_seconds",
     "Time of the last checkpoint."},
    {"rdb_last_bgsave_time_sec", "sluice_checkpoint_last_duration_seconds",
     "Duration of the last checkpoint; -1: none yet."},
    {"sluice_data_directory_bytes", "sluice_data_directory_bytes", "Size of the data directory."},
    {"sluice_event_file_bytes", "sluice_event_file_bytes",
     "Size of the older events of queues on disk."},
    {"sluice_free_disk_bytes", "sluice_disk_free_bytes",
     "Free space on the disk of the data directory."},
    {"sluice_disk_nearly_full", "sluice_disk_nearly_full",
     "1: commands that add data are refused."},
};
constexpr MetricRow kServerCounters[] = {
    {"total_commands_processed", "sluice_commands_total", "Commands executed."},
    {"total_error_replies", "sluice_errors_total", "Commands that ended with an error."},
    {"total_connections_received", "sluice_connections_received_total", "RESP connections so far."},
    {"rejected_connections", "sluice_connections_rejected_total", "RESP connections refused."},
    {"total_net_input_bytes", "sluice_net_input_bytes_total", "Bytes from RESP clients."},
    {"total_net_output_bytes", "sluice_net_output_bytes_total", "Bytes to RESP clients."},
    {"sluice_journal_units", "sluice_journal_units_total", "Units appended."},
    {"sluice_journal_commits", "sluice_journal_commits_total", "Commits written."},
    {"sluice_journal_bytes", "sluice_journal_bytes_total", "Bytes of commits."},
    {"sluice_checkpoints_completed", "sluice_checkpoints_total", "Checkpoints written."},
    {"sluice_checkpoints_failed", "sluice_checkpoints_failed_total", "Checkpoints that failed."},
};

// Collects metrics: holds the requesting client, its user, and the result so far.
class Collector {
 public:
  Collector(EngineClient& client, const MetricsRequest& request)
      : client_(client),
        user_(request.user),
        http_(request.http),
        state_(client.thread().state()) {}

  // The series of a queue; nothing if it is gone, or not readable for this user.
  std::optional<QueueSeries> queue(const QueueName& name);
  void put(const QueueSeriesSet::Line& line);
  void put_rest(const std::map<int, QueueSeries>& rest);
  // Adds a queue that has series of its own.
  void put(const QueueName& name, LargestScopes& largest);
  void server();
  // If there is HTTP.
  void http();
  MetricSet take() { return std::move(metrics_); }

 private:
  RespValue run(int database, std::initializer_list<Bytes> arguments);
  static MetricLabels labels(int database, const std::string& queue) {
    return {{"db", std::to_string(database)}, {"queue", queue}};
  }
  void journal();
  void group();
  void exports();
  // A counter that starts with the process.
  void counter(const char* name, const char* help, double value) {
    metrics_.counter(name, help, {}, value, state_.started_ms);
  }
  void counter(const char* name, const char* help, const std::atomic<uint64_t>& value) {
    counter(name, help, static_cast<double>(value.load(std::memory_order_relaxed)));
  }

  EngineClient& client_;
  const std::shared_ptr<User> user_;
  const HttpService* const http_;
  ServerState& state_;
  MetricSet metrics_;
};

RespValue Collector::run(int database, std::initializer_list<Bytes> arguments) {
  client_.speak_for(user_, database);
  return client_.run({arguments.begin(), arguments.size()});
}

std::optional<QueueSeries> Collector::queue(const QueueName& name) {
  const RespValue stats = run(name.database, {"Q.STATS", name.name});
  if (!stats.is_map()) return std::nullopt;
  QueueBuckets buckets = queue_buckets(*state_.engine, name, kMetricBoundsMs);
  client_.raise_gate(buckets.gate);
  return QueueSeries(stats, std::move(buckets));
}

void Collector::put(const QueueSeriesSet::Line& line) {
  const MetricLabels of_queue = labels(line.queue.database, line.queue.name);
  line.series.put(of_queue, metrics_);
  const bool executions = http_ != nullptr && line.queue.name == http_->aliases().executions;
  if (executions) line.series.put_executions(of_queue, metrics_);
}

void Collector::put_rest(const std::map<int, QueueSeries>& rest) {
  for (const auto& [database, series] : rest) series.put(labels(database, kOtherQueues), metrics_);
}

void Collector::put(const QueueName& name, LargestScopes& largest) {
  client_.raise_gate(largest.gate());
  for (const ScopeCount& group : largest.in_order()) {
    if (group.name.empty()) continue;  // of no group: the queue has its series
    MetricLabels with_group = labels(name.database, name.name);
    with_group.emplace_back("group", group.name);
    metrics_.gauge("queue_group_depth", "Pending jobs of the groups with the most jobs.",
                   with_group, static_cast<double>(group.pending));
    metrics_.gauge("queue_group_active", "Active jobs of the groups with the most jobs.",
                   with_group, static_cast<double>(group.active));
  }
}

std::optional<double> info_number(Bytes info, const std::string& field) {
  const std::string wanted = "\n" + field + ":";
  const size_t at = info.find(wanted);
  if (at == Bytes::npos) return std::nullopt;
  const Bytes rest = info.substr(at + wanted.size());
  return parse_double(rest.substr(0, rest.find('\r')));
}

void Collector::server() {
  // Not all sections: statistics of commands would cost more than the rest together.
  const RespValue info = run(0, {"INFO", "server", "clients", "memory", "persistence", "stats"});
  if (info.is_error()) return;
  for (const MetricRow& row : kServerGauges) {
    const auto value = info_number(info.text, row.field);
    if (value) metrics_.gauge(row.name, row.help, {}, *value);
  }
  for (const MetricRow& row : kServerCounters) {
    const auto value = info_number(info.text, row.field);
    if (value) counter(row.name, row.help, *value);
  }
  journal();
  group();
  exports();
}

// Bucket i of the journal counts syncs of less than 2^i microseconds. Bounds here are milliseconds,
// so buckets are shown from 2^10 microseconds on, which is exact within 2.4 %.
void Collector::journal() {
  const GroupCommitJournal* journal = state_.journal.load(std::memory_order_acquire);
  if (journal == nullptr) return;
  const JournalStats stats = journal->stats();
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
  metrics_.histogram("sluice_journal_sync_seconds", "Duration of the syncs of commits.", {},
                     bounds_ms, std::move(counts), state_.started_ms);
}

void Collector::group() {
  GroupPort* const port = state_.engine->server().group();
  if (port == nullptr) return;
  const auto view = port->view();
  const auto gauge = [&](const char* name, const char* help, double value) {
    metrics_.gauge(name, help, {}, value);
  };
  const auto seconds = [](int64_t ms) { return static_cast<double>(ms) / 1000; };
  metrics_.gauge("sluice_group_primary", "1: this node is the primary of its group.",
                 {{"cluster", view->cluster}, {"group", view->group}},
                 view->role == GroupRole::kPrimary ? 1 : 0);
  gauge("sluice_group_epoch", "The epoch of the group; it grows with each take-over.",
        static_cast<double>(view->epoch));
  gauge("sluice_group_nodes", "Nodes of the group that live.",
        static_cast<double>(view->members.size()));
  const auto differing = [&](const char* what, bool GroupDifference::*differs) {
    const auto count =
        std::count_if(view->members.begin(), view->members.end(),
                      [&](const GroupMember& member) { return view->difference(member).*differs; });
    metrics_.gauge("sluice_group_differing_nodes",
                   "Nodes of the group that differ from its primary.", {{"what", what}},
                   static_cast<double>(count));
  };
  differing("version", &GroupDifference::version);
  differing("config", &GroupDifference::config);
  differing("users", &GroupDifference::users);
  gauge("sluice_group_lag_seconds", "How far this standby is behind the primary.",
        seconds(view->lag_ms));
  gauge("sluice_group_lease_seconds", "How long this primary may still answer reads.",
        seconds(port->lease_ms()));
  gauge("sluice_group_age_seconds", "Time since this node last heard of etcd.",
        seconds(port->view_age_ms()));
  gauge("sluice_group_log_frames", "Pieces of the journal kept in etcd.",
        static_cast<double>(view->log_frames));
  gauge("sluice_group_log_bytes", "Size of the journal kept in etcd.",
        static_cast<double>(view->log_bytes));
  gauge("sluice_group_log_limit_bytes", "Size that the journal in etcd may have.",
        static_cast<double>(view->log_limit_bytes));
  gauge("sluice_group_etcd_bytes", "Size of etcd's database, of the member with the largest one.",
        static_cast<double>(view->etcd_bytes));
  gauge("sluice_group_etcd_quota_bytes",
        "Size that etcd's database may have; 0: etcd does not tell it.",
        static_cast<double>(view->etcd_quota_bytes));
  gauge("sluice_group_copies", "Nodes whose checkpoint the journal in etcd continues.",
        static_cast<double>(view->copies()));
  gauge("sluice_group_last_takeover_seconds", "How long this node's last take-over took.",
        seconds(view->last_takeover_ms));
  counter("sluice_group_takeovers_total", "Take-overs by this node.",
          static_cast<double>(view->takeovers));
}

void Collector::exports() {
  const OtlpCounters& counters = state_.otlp;
  if (!counters.configured) return;
  counter("sluice_otlp_exports_total", "OTLP exports accepted by the collector.", counters.done);
  counter("sluice_otlp_exports_failed_total", "OTLP exports that failed.", counters.failed);
  counter("sluice_otlp_exports_skipped_total",
          "OTLP exports skipped: not due yet, or not possible.", counters.skipped);
}

void Collector::http() {
  if (http_ == nullptr) return;
  const HttpService::Counters& counters = http_->counters();
  metrics_.gauge("sluice_http_connections", "HTTP connections.", {},
                 static_cast<double>(counters.connections.load(std::memory_order_relaxed)));
  counter("sluice_http_connections_received_total", "HTTP connections so far.",
          counters.connections_received);
  counter("sluice_http_connections_rejected_total", "HTTP connections refused.",
          counters.connections_rejected);
  counter("sluice_http_requests_total", "HTTP requests.", counters.requests);
  counter("sluice_http_timeouts_total", "HTTP clients that timed out.", counters.timeouts);
}

// One collection: all queues are read, then those with the most jobs are added with their groups,
// then the server's series.
class Collection {
 public:
  Collection(EngineClient& client, MetricsRequest request)
      : thread_(client.thread()),
        request_(std::move(request)),
        collector_(client, request_),
        series_(static_cast<size_t>(
            thread_.state().limits.metrics_queues.load(std::memory_order_relaxed))) {}

  // Returns false at the end.
  bool go_on();

 private:
  bool busy() const {
    return thread_.levels().nested() ||
           thread_.engine().script_busy.load(std::memory_order_relaxed);
  }
  // Each of these does one piece, and returns false when there is nothing left.
  bool look();
  bool put();

  IoThread& thread_;
  const MetricsRequest request_;
  Collector collector_;
  QueueWalk walk_;
  std::vector<QueueName> names_;  // to be read next, from the back
  QueueSeriesSet series_;
  std::optional<LargestScopes> groups_;  // of the last element of series_
};

bool Collection::look() {
  constexpr size_t kNamesAtOnce = 100;
  if (names_.empty()) {
    names_ = walk_.next(thread_.engine(), kNamesAtOnce);
    return !names_.empty();
  }
  if (auto series = collector_.queue(names_.back())) {
    series_.take(std::move(names_.back()), std::move(*series));
  }
  names_.pop_back();
  return true;
}

bool Collection::put() {
  constexpr size_t kShownGroups = 20;
  std::vector<QueueSeriesSet::Line>& lines = series_.lines();
  if (lines.empty()) return false;
  const QueueSeriesSet::Line& line = lines.back();
  if (!groups_) {
    collector_.put(line);
    groups_.emplace(ConfigLevel::kGroup, kShownGroups);
  }
  if (groups_->go_on(thread_.engine(), line.queue)) return true;
  collector_.put(line.queue, *groups_);
  groups_.reset();
  lines.pop_back();
  return true;
}

bool Collection::go_on() {
  if (!request_.wanted()) return false;
  if (busy()) {
    request_.then(std::nullopt);
    return false;
  }
  if (look() || put()) return true;
  collector_.put_rest(series_.rest());
  collector_.server();
  collector_.http();
  request_.then(collector_.take());
  return false;
}

}  // namespace

void collect_metrics(EngineClient& client, MetricsRequest request) {
  const auto collection = std::make_shared<Collection>(client, std::move(request));
  work_in_turns(client.thread(), [collection] { return collection->go_on(); });
}

}  // namespace sluice
