// Names without a prefix are those that the seeds' dashboards query; the server's own begin with
// sluice_.
#include "net/admin/metrics_collect.h"

#include <array>
#include <initializer_list>
#include <optional>

#include "engine/base/numbers.h"
#include "net/http/http_service.h"
#include "net/io_thread.h"
#include "net/turns.h"

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
    {"sluice_queue_time_ahead_seconds", "sluice_queue_time_ahead_seconds",
     "How far queue time is ahead of the wall clock; negative: behind."},
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
    {"sluice_event_file_bytes", "sluice_event_file_bytes", "Older events of queues on the disk."},
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

// What collects: the client that asks, for whom, and what it has so far.
class Collector {
 public:
  Collector(EngineClient& client, std::shared_ptr<User> user)
      : client_(client), user_(std::move(user)), state_(client.thread().state()) {}

  void queue(const QueueName& name);
  void server();
  void http(const HttpService& service);
  MetricSet take() { return std::move(metrics_); }

 private:
  RespValue run(int database, std::initializer_list<Bytes> arguments);
  void details(const QueueName& name, const MetricLabels& labels, const RespValue& stats);
  void groups(const QueueName& name, const MetricLabels& labels);
  void journal();
  void exports();
  // A counter that this process began to count.
  void counter(const char* name, const char* help, double value) {
    metrics_.counter(name, help, {}, value, state_.started_ms);
  }
  void counter(const char* name, const char* help, const std::atomic<uint64_t>& value) {
    counter(name, help, static_cast<double>(value.load(std::memory_order_relaxed)));
  }

  EngineClient& client_;
  const std::shared_ptr<User> user_;
  ServerState& state_;
  MetricSet metrics_;
};

RespValue Collector::run(int database, std::initializer_list<Bytes> arguments) {
  client_.speak_for(user_, database);
  return client_.run({arguments.begin(), arguments.size()});
}

void Collector::groups(const QueueName& name, const MetricLabels& labels) {
  const LargestGroups largest = largest_groups(*state_.engine, name, kShownGroups);
  client_.raise_gate(largest.gate);
  for (const GroupCount& group : largest.groups) {
    MetricLabels with_group = labels;
    with_group.emplace_back("group", group.name);
    metrics_.gauge("queue_group_depth", "Pending jobs of the groups with the most jobs.",
                   with_group, static_cast<double>(group.pending));
    metrics_.gauge("queue_group_active", "Active jobs of the groups with the most jobs.",
                   with_group, static_cast<double>(group.active));
  }
}

void Collector::details(const QueueName& name, const MetricLabels& labels, const RespValue& stats) {
  const RespValue& depths = stats.at("by_priority");
  for (size_t i = 0; i + 1 < depths.items.size(); i += 2) {
    MetricLabels with_band = labels;
    with_band.emplace_back("priority", depths.items[i].text);
    metrics_.gauge("queue_priority_depth", "Pending jobs by priority.", with_band,
                   depths.items[i + 1].as_number());
  }
  const int64_t since_ms = stats.at("since").integer;
  QueueBuckets buckets = queue_buckets(*state_.engine, name, kBoundsMs);
  client_.raise_gate(buckets.gate);
  metrics_.gauge("queue_paused", "1: nothing is popped, as its configuration says.", labels,
                 buckets.pops_paused ? 1 : 0);
  for (BandBuckets& band : buckets.bands) {
    MetricLabels with_band = labels;
    with_band.emplace_back("priority", band.band);
    metrics_.histogram("queue_wait_time_seconds", "From when a job might run to its start.",
                       with_band, kBoundsMs, std::move(band.wait_ms), since_ms);
    metrics_.histogram("queue_run_time_seconds", "From the start of a run to its end.", with_band,
                       kBoundsMs, std::move(band.run_ms), since_ms);
  }
}

void Collector::queue(const QueueName& name) {
  const RespValue stats = run(name.database, {"Q.STATS", name.name});
  if (!stats.is_map()) return;
  const MetricLabels labels = {{"db", std::to_string(name.database)}, {"queue", name.name}};
  for (const FieldRow& row : kQueueGauges) {
    metrics_.gauge(row.name, row.help, labels, stats.at(row.field).as_number());
  }
  // They outlive the process, and nothing says when they began.
  for (const FieldRow& row : kQueueCounters) {
    metrics_.counter(row.name, row.help, labels, stats.at(row.field).as_number(), 0);
  }
  const RespValue& rejected = stats.at("rejected");
  for (size_t i = 0; i + 1 < rejected.items.size(); i += 2) {
    MetricLabels with_reason = labels;
    with_reason.emplace_back("reason", rejected.items[i].text);
    metrics_.counter("queue_rejected_total", "Jobs that were refused.", with_reason,
                     rejected.items[i + 1].as_number(), stats.at("since").integer);
  }
  metrics_.gauge("queue_oldest_seconds",
                 "For how long the longest-waiting pending job has been due.", labels,
                 stats.at("oldest_ms").as_number() / 1000);
  metrics_.gauge("queue_timer_lag_seconds", "How late the queue's timers run.", labels,
                 stats.at("timer_lag_ms").as_number() / 1000);
  details(name, labels, stats);
  groups(name, labels);
}

std::optional<double> info_number(Bytes info, const std::string& field) {
  const std::string wanted = "\n" + field + ":";
  const size_t at = info.find(wanted);
  if (at == Bytes::npos) return std::nullopt;
  const Bytes rest = info.substr(at + wanted.size());
  return parse_double(rest.substr(0, rest.find('\r')));
}

void Collector::server() {
  // Not all of it: statistics of commands cost more than the rest together.
  const RespValue info = run(0, {"INFO", "server", "clients", "memory", "persistence", "stats"});
  if (info.is_error()) return;
  for (const FieldRow& row : kServerGauges) {
    const auto value = info_number(info.text, row.field);
    if (value) metrics_.gauge(row.name, row.help, {}, *value);
  }
  for (const FieldRow& row : kServerCounters) {
    const auto value = info_number(info.text, row.field);
    if (value) counter(row.name, row.help, *value);
  }
  journal();
  exports();
}

// Bucket i of the journal holds what took less than 2^i microseconds; bounds here are milliseconds,
// so it is shown from 2^10 microseconds on, within 2.4 %.
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
  metrics_.histogram("sluice_journal_sync_seconds", "How long the syncs of commits took.", {},
                     bounds_ms, std::move(counts), state_.started_ms);
}

void Collector::exports() {
  const OtlpCounters& counters = state_.otlp;
  if (!counters.configured) return;
  counter("sluice_otlp_exports_total", "Exports by OTLP that a collector took.", counters.done);
  counter("sluice_otlp_exports_failed_total", "Exports by OTLP that failed.", counters.failed);
  counter("sluice_otlp_exports_skipped_total",
          "Exports by OTLP that were not due yet, or could not be made.", counters.skipped);
}

void Collector::http(const HttpService& service) {
  const HttpService::Counters& counters = service.counters();
  metrics_.gauge("sluice_http_connections", "HTTP connections.", {},
                 static_cast<double>(counters.connections.load(std::memory_order_relaxed)));
  counter("sluice_http_connections_received_total", "HTTP connections so far.",
          counters.connections_received);
  counter("sluice_http_connections_rejected_total", "HTTP connections that were refused.",
          counters.connections_rejected);
  counter("sluice_http_requests_total", "HTTP requests.", counters.requests);
  counter("sluice_http_timeouts_total", "HTTP clients that were too slow.", counters.timeouts);
}

// One collection, a queue at a time.
class Collection {
 public:
  Collection(EngineClient& client, MetricsRequest request)
      : thread_(client.thread()), request_(std::move(request)), collector_(client, request_.user) {}

  // False: that was the end.
  bool go_on();

 private:
  bool busy() const {
    return thread_.nested() || thread_.engine().script_busy.load(std::memory_order_relaxed);
  }

  IoThread& thread_;
  const MetricsRequest request_;
  Collector collector_;
  std::optional<std::vector<QueueName>> names_;
  size_t next_ = 0;
};

bool Collection::go_on() {
  if (!request_.wanted()) return false;
  if (busy()) {
    request_.then(std::nullopt);
    return false;
  }
  if (!names_) names_ = queue_names(thread_.engine());
  if (next_ < names_->size()) {
    collector_.queue((*names_)[next_++]);
    return true;
  }
  collector_.server();
  if (request_.http != nullptr) collector_.http(*request_.http);
  request_.then(collector_.take());
  return false;
}

}  // namespace

void collect_metrics(EngineClient& client, MetricsRequest request) {
  const auto collection = std::make_shared<Collection>(client, std::move(request));
  work_in_turns(client.thread(), [collection] { return collection->go_on(); });
}

}  // namespace sluice
