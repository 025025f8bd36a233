// INFO persistence.
#include <algorithm>

#include "net/server/server_info.h"

namespace sluice {

namespace {

int64_t whole_seconds(double seconds) { return static_cast<int64_t>(seconds); }

// An upper bound of the sync time that this fraction of all syncs did not exceed.
uint64_t sync_percentile_us(const JournalStats& stats, double part) {
  uint64_t seen = 0;
  const auto wanted = static_cast<uint64_t>(part * static_cast<double>(stats.syncs));
  for (size_t i = 0; i < JournalStats::kSyncBuckets; ++i) {
    seen += stats.sync_us[i];
    if (seen > wanted) return uint64_t{1} << i;
  }
  return stats.sync_us_max;
}

const char* mode_name(SyncMode mode) {
  switch (mode) {
    case SyncMode::kAlways:
      return "always";
    case SyncMode::kEverySecond:
      return "everysec";
    case SyncMode::kNever:
      return "no";
  }
  CHECK(false);
}

}  // namespace

void ServerInfo::persistence(InfoWriter& out) {
  const bool stored = store_.is_ready();
  CheckpointStatus status;
  if (stored) status = store_.get().checkpointer()->status();
  const bool appending = stored && store_.get().journal().attached();
  const bool good = status.last_result.ok() && !store_.has_failed();
  const bool runs = store_.checkpoint_runs();
  const bool is_loading = shared_.state.loading.load();
  const int64_t none = -1;
  const int64_t last_s = status.completed == 0 ? none : whole_seconds(status.last_seconds);
  out.field("loading", int64_t{is_loading});
  out.field("async_loading", int64_t{0});
  out.field("current_cow_peak", int64_t{0});
  out.field("current_cow_size", int64_t{0});
  out.field("current_cow_size_age", int64_t{0});
  out.field("current_fork_perc", "0.00");
  out.field("current_save_keys_processed", status.running ? status.records : 0);
  out.field("current_save_keys_total",
            status.running ? std::max(status.records, status.last.records) : 0);
  out.field("rdb_changes_since_last_save",
            stored ? store_.get().checkpointer()->changes() : shared_.engine->changes.load());
  out.field("rdb_bgsave_in_progress", int64_t{runs});
  out.field("rdb_last_save_time", last_checkpoint_s());
  out.field("rdb_last_bgsave_status", good ? "ok" : "err");
  out.field("rdb_last_bgsave_time_sec", last_s);
  out.field("rdb_current_bgsave_time_sec", status.running ? int64_t{0} : none);
  out.field("rdb_saves", status.completed);
  out.field("rdb_last_cow_size", int64_t{0});
  out.field("rdb_last_load_keys_expired", int64_t{0});
  out.field("rdb_last_load_keys_loaded", loading_.recovered_keys());
  out.field("aof_enabled", int64_t{appending});
  out.field("aof_rewrite_in_progress", int64_t{appending && status.running});
  out.field("aof_rewrite_scheduled", int64_t{0});
  out.field("aof_last_rewrite_time_sec", appending ? last_s : none);
  out.field("aof_current_rewrite_time_sec", appending && status.running ? int64_t{0} : none);
  out.field("aof_last_bgrewrite_status", good ? "ok" : "err");
  out.field("aof_rewrites", appending ? status.completed : 0);
  out.field("aof_rewrites_consecutive_failures", status.failed_in_a_row);
  out.field("aof_last_write_status", life_.journal_failed() ? "err" : "ok");
  out.field("aof_last_cow_size", int64_t{0});
  out.field("module_fork_in_progress", int64_t{0});
  out.field("module_fork_last_cow_size", int64_t{0});
  if (appending) {
    out.field("aof_current_size", store_.get().disk_bytes());
    out.field("aof_base_size", status.last.bytes);
    out.field("aof_pending_rewrite", int64_t{0});
    out.field("aof_buffer_length", static_cast<uint64_t>(store_.get().journal().unwritten_bytes()));
    out.field("aof_pending_bio_fsync", int64_t{0});
    out.field("aof_delayed_fsync", int64_t{0});
  }
  if (is_loading) loading_.info(out);
  if (stored) journal(out, status);
}

int64_t ServerInfo::last_checkpoint_s() {
  if (!store_.is_ready()) return shared_.started_ms / 1000;
  const int64_t at_ms = store_.get().checkpointer()->status().last_success_ms;
  return (at_ms == 0 ? shared_.started_ms : at_ms) / 1000;
}

void ServerInfo::journal(InfoWriter& out, const CheckpointStatus& checkpoint) {
  const GroupCommitJournal& journal = store_.get().journal();
  const JournalStats stats = journal.stats();
  out.field("sluice_journal_mode", journal.attached() ? mode_name(journal.mode()) : "off");
  out.field("sluice_journal_last_lsn", journal.last_lsn());
  out.field("sluice_journal_durable_lsn", journal.durable_lsn());
  out.field("sluice_journal_synced_lsn", journal.synced_lsn());
  out.field("sluice_journal_units", stats.units);
  out.field("sluice_journal_commits", stats.commits);
  out.field("sluice_journal_bytes", stats.commit_bytes);
  out.field("sluice_journal_unwritten_bytes", static_cast<uint64_t>(journal.unwritten_bytes()));
  out.field("sluice_journal_last_commit_units", stats.last_commit_units);
  out.field("sluice_journal_syncs", stats.syncs);
  out.field("sluice_journal_sync_us_p50", sync_percentile_us(stats, 0.5));
  out.field("sluice_journal_sync_us_p99", sync_percentile_us(stats, 0.99));
  out.field("sluice_journal_sync_us_max", stats.sync_us_max);
  out.field("sluice_checkpoint_running", int64_t{checkpoint.running});
  out.field("sluice_checkpoint_number", checkpoint.last.checkpoint);
  out.field("sluice_checkpoint_begin_lsn", checkpoint.last.begin_lsn);
  out.field("sluice_checkpoint_end_lsn", checkpoint.last.end_lsn);
  out.field("sluice_checkpoint_bytes", checkpoint.last.bytes);
  out.field("sluice_checkpoints_completed", checkpoint.completed);
  out.field("sluice_checkpoints_failed", checkpoint.failed);
  out.field("sluice_data_directory_bytes", store_.get().disk_bytes());
  out.field("sluice_event_file_bytes", store_.event_bytes());
  out.field("sluice_free_disk_bytes", journal.disk().bytes());
  out.field("sluice_disk_nearly_full", int64_t{journal.disk().below_min()});
}

}  // namespace sluice
